# Where programs begin: global pointer, arguments (as Linux has them on the stack), main, exit.
    .section .text.start
    .global _start
_start:
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    ld a0, 0(sp)
    addi a1, sp, 8
    andi sp, sp, -16
    call main
    call exit
