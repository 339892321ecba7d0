# namegate as an image. The steps are those of scripts/image.sh, which a test runs as well; the result holds no compiler.
#   docker build -t namegate .
#   docker run --network host --cap-add NET_ADMIN --cap-add BPF --cap-add PERFMON -v /sys/fs/bpf:/sys/fs/bpf namegate
FROM node:24-bookworm AS build
WORKDIR /opt/namegate
COPY scripts/image.sh scripts/image.sh
RUN sh scripts/image.sh build-packages
COPY . .
RUN sh scripts/image.sh build

FROM node:24-bookworm-slim
COPY --from=build /opt/namegate /opt/namegate
RUN sh /opt/namegate/scripts/image.sh run-packages
RUN ln -s /opt/namegate/bin/namegate /usr/local/bin/namegate
WORKDIR /var/lib/namegate
ENTRYPOINT ["/usr/local/bin/namegate"]
CMD ["run", "--config", "/etc/namegate/namegate.yaml"]
