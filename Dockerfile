# A Debian 12 machine with everything opfuse needs:  docker build -t opfuse . && docker run --rm -it opfuse
FROM debian:12
WORKDIR /opfuse
COPY . .
RUN CI=true ./dev build --no-tests
CMD ["./dev", "demo"]
