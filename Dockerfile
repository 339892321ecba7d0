# namegate as an image. The steps are those of scripts/image.sh, which a test runs as well; the result holds no compiler.
#   docker build -t namegate .
#   docker run --network host --cap-add NET_ADMIN --cap-add BPF --cap-add PERFMON -v /sys/fs/bpf:/sys/fs/bpf \
#     -v /var/lib/namegate:/var/lib/namegate -v /run/namegate:/run/namegate namegate
# It runs deploy/image.yaml; with -v /etc/namegate:/etc/namegate:ro your own configuration.
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
COPY deploy/image.yaml /etc/namegate/namegate.yaml
COPY config/endpoints.yaml /etc/namegate/
COPY config/policies /etc/namegate/policies
WORKDIR /var/lib/namegate
ENTRYPOINT ["/usr/local/bin/namegate"]
CMD ["run", "--config", "/etc/namegate/namegate.yaml"]
