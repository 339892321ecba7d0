# Step 2 of action.yml: runs the command in the sandbox, and ends with its exit code. Writes the outputs `report` and `policy`.
# The command does not see the files with which a step changes later steps (GITHUB_ENV, GITHUB_PATH, GITHUB_OUTPUT), because later
# steps are outside of the sandbox.
set -euo pipefail

fail() {
  echo "::error title=namegate::$1"
  exit 2
}

folder=$(mktemp -d "${RUNNER_TEMP:-/tmp}/namegate-XXXXXX")
args=(exec --report "$folder/report.json" --suggest "$folder/policy.yaml" --verbose --deny-response "$INPUT_DENY_RESPONSE")
case $INPUT_MODE in
  audit) args+=(--audit) ;;
  enforce) ;;
  *) fail "mode is \"$INPUT_MODE\", expected audit or enforce" ;;
esac
[ -n "$INPUT_RUN" ] || fail 'run is empty, expected a command'
[ -z "$INPUT_POLICY" ] || args+=(--policy "$INPUT_POLICY")

# One entry per line, without comments and blanks around it.
entries() {
  sed -E 's/(^|[[:space:]])#.*$//; s/^[[:space:]]+//; s/[[:space:]]+$//; /^$/d' <<<"$1"
}

while IFS= read -r line; do args+=(--allow "$line"); done < <(entries "$INPUT_ALLOW")
while IFS= read -r line; do
  [ "${line#--}" != "$line" ] || fail "options has the line \"$line\", expected --OPTION or --OPTION=VALUE"
  args+=("$line")
done < <(entries "$INPUT_OPTIONS")
# The command must not write the report, or what later steps read.
args+=(--hide "$folder")
for each in "${GITHUB_ENV-}" "${GITHUB_PATH-}" "${GITHUB_OUTPUT-}" "${GITHUB_STATE-}" "${GITHUB_STEP_SUMMARY-}"; do
  [ ! -e "$each" ] || args+=(--hide "$each")
done

printf 'report=%s\npolicy=%s\n' "$folder/report.json" "$folder/policy.yaml" >>"$GITHUB_OUTPUT"
# The command does not get the inputs of this action.
script=$INPUT_RUN
unset INPUT_RUN INPUT_MODE INPUT_ALLOW INPUT_POLICY INPUT_DENY_RESPONSE INPUT_OPTIONS
exec "$NAMEGATE" "${args[@]}" -- bash --noprofile --norc -eo pipefail -c "$script"
