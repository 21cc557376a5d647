#!/bin/sh
# Installs missing programs that the tests need; without permission, prints the command.
set -eu

missing=""
pairs="node:nodejs zsh:zsh fish:fish tmux:tmux bwrap:bubblewrap openssl:openssl rg:ripgrep"
# Languages. R (r-base-core) and Java (default-jdk-headless) are large: their tests are skipped where they are missing.
pairs="$pairs ruby:ruby"
# A desktop in memory, and applications of each kind: GTK, Qt, Tk, a terminal, a browser.
pairs="$pairs Xvfb:xvfb openbox:openbox xrandr:x11-xserver-utils xclip:xclip dbus-daemon:dbus"
pairs="$pairs /usr/libexec/at-spi-bus-launcher:at-spi2-core"
pairs="$pairs mousepad:mousepad xterm:xterm chromium:chromium"
# Other real applications: GTK 2 and 3, Qt, FLTK. Ten megabytes in total.
pairs="$pairs galculator:galculator thunar:thunar pcmanfm:pcmanfm featherpad:featherpad dillo:dillo"
pairs="$pairs lxterminal:lxterminal pluma:pluma l3afpad:l3afpad"
pairs="$pairs /usr/lib/python3/dist-packages/PyQt5:python3-pyqt5 /usr/share/doc/python3-tk:python3-tk"
for pair in $pairs; do
    program="${pair%%:*}"
    command -v "$program" >/dev/null 2>&1 || [ -e "$program" ] || missing="$missing ${pair##*:}"
done
# With systemd, the package of a mail or ssh server would start it, so it is not installed automatically.
if [ ! -d /run/systemd/system ]; then
    [ -x /usr/sbin/dovecot ] || missing="$missing dovecot-imapd"
    [ -x /usr/sbin/sshd ] || missing="$missing openssh-server"
fi
# Real MCP servers, from npm.
servers=""
for server in everything filesystem memory; do
    command -v "mcp-server-$server" >/dev/null 2>&1 || servers="$servers @modelcontextprotocol/server-$server"
done
if [ -n "$servers" ] && command -v npm >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    npm install --global --silent --no-audit --no-fund $servers >/dev/null 2>&1 ||
        echo "Could not install them; tests that need them will be skipped. To try again: npm install --global$servers"
fi
[ -n "$missing" ] || exit 0

command="apt-get install --yes --no-install-recommends$missing"
if ! command -v apt-get >/dev/null 2>&1; then
    echo "Tests that need these programs will be skipped; install them to run all:$missing"
    exit 0
fi
if [ "$(id -u)" = 0 ]; then
    as_root=""
elif sudo -n true 2>/dev/null; then
    as_root="sudo "
else
    echo "Tests that need them will be skipped. To run all: sudo $command"
    exit 0
fi
echo "Installing$missing"
export DEBIAN_FRONTEND=noninteractive
# The package lists of a fresh machine may be empty or old, so retry after updating them.
if ! ${as_root}$command >/dev/null 2>&1; then
    ${as_root}apt-get update --quiet >/dev/null 2>&1 || true
    ${as_root}$command >/dev/null || echo "Could not install them; tests that need them will be skipped. To try again: $command"
fi
