#!/bin/sh
# Builds the image formwork:0.1.0 with buildah (Debian's package), without root and without a registry:
#     cargo build --profile dist -p formwork-cli
#     sh docs/deploy/image.sh target/dist/formwork
set -eu
binary=$1
here=$(dirname "$0")
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
root=$context/root
install -D "$binary" "$root/usr/local/bin/formwork"
# The loader and the libraries, at the places at which the command looks for them.
ldd "$binary" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done
install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
mkdir -p "$root/data" "$root/etc/formwork"
install -d -m 1777 "$root/tmp"
chmod 777 "$root/data"
buildah build --isolation chroot --tag formwork:0.1.0 --file "$here/Containerfile" "$context"
