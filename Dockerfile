# namegate as an image. The build stage runs the same script as `npm run build`; the result holds no compiler.
#   docker build -t namegate .
#   docker run --network host --cap-add NET_ADMIN --cap-add BPF --cap-add PERFMON -v /sys/fs/bpf:/sys/fs/bpf namegate
FROM node:24-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
      clang gcc libc6-dev libbpf-dev linux-libc-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/namegate
COPY package.json package-lock.json .npmrc ./
COPY scripts scripts
RUN npm ci
COPY . .
RUN npm run build && npm prune --omit=dev && rm -rf test demo build/.setup.lock

FROM node:24-bookworm-slim
# libbpf's own needs; iproute2 for the init container that gives the listener its address.
RUN apt-get update && apt-get install -y --no-install-recommends libbpf1 libelf1 zlib1g iproute2 && \
      rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/namegate /opt/namegate
RUN ln -s /opt/namegate/bin/namegate /usr/local/bin/namegate
WORKDIR /var/lib/namegate
ENTRYPOINT ["/usr/local/bin/namegate"]
CMD ["run", "--config", "/etc/namegate/namegate.yaml"]
