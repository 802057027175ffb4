/* The functions of names.h: each jumps to the address in its slot. While that is null, `cosched_find` determines it; the
   caller's arguments, in registers and on the stack, are preserved. None of these functions takes floating-point
   numbers, and this file is compiled without their registers. */
#define FORWARD(name) "forward " #name "\n"

#if defined(__x86_64__)
__asm__(
    ".text\n"
    ".set index, 0\n"
    ".macro forward name\n"
    "    .globl \\name\n"
    "    .type \\name, @function\n"
    "    .p2align 4\n"
    "\\name:\n"
    "    endbr64\n"
    "    mov cosched_slots + 8 * index(%rip), %r11\n"
    "    test %r11, %r11\n"
    "    jz 1f\n"
    "    jmp *%r11\n"
    "1:  mov $index, %r11d\n"
    "    jmp cosched_jump\n"
    "    .size \\name, . - \\name\n"
    "    .set index, index + 1\n"
    ".endm\n"
    "cosched_jump:\n"
    "    push %rdi\n push %rsi\n push %rdx\n push %rcx\n push %r8\n push %r9\n sub $8, %rsp\n"
    "    mov %r11d, %edi\n"
    "    call cosched_find\n"
    "    mov %rax, %r11\n"
    "    add $8, %rsp\n pop %r9\n pop %r8\n pop %rcx\n pop %rdx\n pop %rsi\n pop %rdi\n"
    "    jmp *%r11\n"
    /* dlsym(RTLD_NEXT, name), whose "next" is relative to the caller: so it must return to this code. */
    ".globl cosched_next\n .hidden cosched_next\n .type cosched_next, @function\n"
    "cosched_next:\n"
    "    endbr64\n"
    "    mov %rdi, %rax\n"
    "    mov $-1, %rdi\n"
    "    sub $8, %rsp\n"
    "    call *%rax\n"
    "    add $8, %rsp\n"
    "    ret\n"
    KERNEL_CALLS(FORWARD) LIBRARY_CALLS(FORWARD));

static ptrdiff_t from_thread_pointer(const char *place) {
    const char *pointer;
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return place - pointer;
}
#elif defined(__aarch64__)
__asm__(
    ".text\n"
    ".set index, 0\n"
    ".macro forward name\n"
    "    .globl \\name\n"
    "    .type \\name, %function\n"
    "    .p2align 4\n"
    "\\name:\n"
    "    hint #34\n"
    "    adrp x16, cosched_slots + 8 * index\n"
    "    ldr x16, [x16, #:lo12:cosched_slots + 8 * index]\n"
    "    cbz x16, 1f\n"
    "    br x16\n"
    "1:  mov w17, #index\n"
    "    b cosched_jump\n"
    "    .size \\name, . - \\name\n"
    "    .set index, index + 1\n"
    ".endm\n"
    "cosched_jump:\n"
    "    stp x29, x30, [sp, #-96]!\n"
    "    stp x0, x1, [sp, #16]\n stp x2, x3, [sp, #32]\n stp x4, x5, [sp, #48]\n stp x6, x7, [sp, #64]\n str x8, [sp, #80]\n"
    "    mov w0, w17\n"
    "    bl cosched_find\n"
    "    mov x16, x0\n"
    "    ldp x0, x1, [sp, #16]\n ldp x2, x3, [sp, #32]\n ldp x4, x5, [sp, #48]\n ldp x6, x7, [sp, #64]\n ldr x8, [sp, #80]\n"
    "    ldp x29, x30, [sp], #96\n"
    "    br x16\n"
    /* As above. */
    ".globl cosched_next\n .hidden cosched_next\n .type cosched_next, %function\n"
    "cosched_next:\n"
    "    hint #34\n"
    "    stp x29, x30, [sp, #-16]!\n"
    "    mov x2, x0\n"
    "    mov x0, #-1\n"
    "    blr x2\n"
    "    ldp x29, x30, [sp], #16\n"
    "    ret\n"
    KERNEL_CALLS(FORWARD) LIBRARY_CALLS(FORWARD));

static ptrdiff_t from_thread_pointer(const char *place) {
    const char *pointer;
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
    return place - pointer;
}
#endif
