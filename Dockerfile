# namegate as an image. The steps are those of scripts/image.sh; the result has no compiler. docs/image.md explains the image.
#   docker build -t namegate .
#   docker run --network host --cap-add NET_ADMIN --cap-add BPF --cap-add PERFMON -v /sys/fs/bpf:/sys/fs/bpf \
#     -v /var/lib/namegate:/var/lib/namegate -v /run/namegate:/run/namegate namegate
# It runs deploy/image.yaml; with -v /etc/namegate:/etc/namegate:ro your own configuration.
# Without Docker, `sh scripts/image-oci.sh` builds this file, and gives the two bases.
ARG BUILD_BASE=docker.io/library/node:24-trixie
ARG BASE=docker.io/library/node:24-trixie-slim

FROM ${BUILD_BASE} AS build
WORKDIR /opt/namegate
COPY scripts/image.sh scripts/image.sh
RUN sh scripts/image.sh build-packages
COPY . .
RUN sh scripts/image.sh build && sh scripts/image.sh keep

FROM ${BASE}
COPY scripts/image.sh /opt/namegate/scripts/image.sh
RUN sh /opt/namegate/scripts/image.sh run-packages
COPY --from=build /opt/namegate /opt/namegate
RUN ln -s /opt/namegate/bin/namegate /usr/local/bin/namegate
COPY deploy/image.yaml /etc/namegate/namegate.yaml
COPY deploy/image-dns-only.yaml /etc/namegate/dns-only.yaml
COPY config/endpoints.yaml /etc/namegate/
COPY config/policies /etc/namegate/policies
LABEL org.opencontainers.image.title="namegate" \
  org.opencontainers.image.description="A transparent DNS proxy that enforces ToFQDN egress policy on Linux" \
  org.opencontainers.image.licenses="Apache-2.0"
WORKDIR /var/lib/namegate
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["/usr/local/bin/namegate", "status", "--ready"]
ENTRYPOINT ["/usr/local/bin/namegate"]
CMD ["run", "--config", "/etc/namegate/namegate.yaml"]
