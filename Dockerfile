# For those with a container daemon; `make image` makes the same image without one.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY . .
ENV GOWORK=off
WORKDIR /src/cmd
RUN go mod download
ARG TARGETOS TARGETARCH VERSION=
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -tags grpcnotrace -ldflags="-s -w -X main.version=$VERSION" -o /sallyport ./sallyport

FROM scratch
COPY --from=build /sallyport /sallyport
USER 65532:65532
ENTRYPOINT ["/sallyport"]
