# Sourced by the tests that boot a machine in an emulator (no KVM needed): they set `what` (for messages) and `work` (a folder for the consoles).
passed=0 failed=0

skip() {
    echo "SKIPPED: $what: $1"
    echo "0 passed, 0 failed"
    exit 0
}

need_emulator() {
    kernel=$(compgen -G 'build/kernel/boot/vmlinuz-*' | head -1)
    [ "$(uname -m)" = x86_64 ] || skip "the emulated machine is x86-64, this one is $(uname -m)"
    command -v qemu-system-x86_64 >/dev/null || skip "qemu-system-x86_64 is not installed (tools/setup test installs it)"
    [ -n "$kernel" ] || skip "no kernel in build/kernel (tools/setup test downloads it)"
    command -v cpio >/dev/null || skip "cpio is not installed"
}

# Packs a folder as the file system that the emulated machine starts with: FOLDER FILE
pack_root() { (cd "$1" && find . | cpio --quiet -o -H newc) >"$2"; }

# Boots a machine that runs these checks, for at most a number of seconds, and counts: CHECKS SECONDS WORDS-FOR-THE-KERNEL QEMU-OPTION…
boot() {
    local checks=$1 limit_s=$2 words=$3 console=$work/$1.log
    shift 3
    timeout --foreground "$limit_s" nice -n 5 qemu-system-x86_64 -accel tcg,thread=multi -nodefaults -no-reboot -display none \
        "$@" -serial "file:$console" -kernel "$kernel" -append "console=ttyS0 quiet panic=-1 checks=$checks $words" </dev/null
    tr -d '\r' <"$console" | grep -aE '^(ok|FAILED|note): '
    passed=$((passed + $(tr -d '\r' <"$console" | grep -ac '^ok: ')))
    failed=$((failed + $(tr -d '\r' <"$console" | grep -ac '^FAILED: ')))
    if ! grep -aq "^$checks: end" "$console"; then
        echo "FAILED: the emulated machine did not come to the end within $limit_s s; the end of its console:"
        tail -n 15 "$console" | sed 's/^/    /'
        failed=$((failed + 1))
    fi
}

# The closing line, and the test's exit code.
finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
}
