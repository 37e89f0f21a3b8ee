# lethe's image: the program, the libraries that it loads, and CA certificates. No shell, no package manager; it
# runs as uid 65532 with a read-only root. `make image` builds it; so does `docker build .`.
#
# debian:13 is what Debian says today, with its security updates; apt adds to it what is newest, so a digest alone
# fixes no image. Who must build from one that was looked at names it:
#   docker buildx imagetools inspect debian:13 --format '{{.Manifest.Digest}}'
#   docker build --build-arg DEBIAN=debian@sha256:... .
ARG DEBIAN=debian:13
FROM --platform=$BUILDPLATFORM ${DEBIAN} AS build
ARG TARGETARCH
ARG SOURCE_DATE_EPOCH=0
ENV DEBIAN_FRONTEND=noninteractive
WORKDIR /lethe
COPY . .
# make installs what it needs. Everything gets the time of the sources.
RUN apt-get update -qq && apt-get install -qq -y --no-install-recommends make ca-certificates > /dev/null && \
    make image-root ARCH=$TARGETARCH ROOT=/image && \
    find /image -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +

FROM scratch
COPY --from=build /image/ /
ARG VERSION=0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="lethe" \
      org.opencontainers.image.description="Deduplicates a Kafka topic into another, exactly once" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV PATH=/usr/bin
USER 65532:65532
EXPOSE 9464
ENTRYPOINT ["/usr/bin/lethe"]
CMD ["help"]
