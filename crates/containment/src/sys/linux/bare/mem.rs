//! The memory functions that compiled Rust calls without being asked.
//!
//! They come from libc elsewhere; here there is none. The crate is built with `no_builtins`, so that the loops below are
//! not themselves turned into calls of what they implement.

use core::ffi::{c_int, c_void};

// SAFETY: the name is the C ABI's own, and nothing else in the program defines it.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut c_void, from: *const c_void, n: usize) -> *mut c_void {
    let (t, f) = (to.cast::<u8>(), from.cast::<u8>());
    for i in 0..n {
        // SAFETY: the caller promises n readable bytes at `from` and n writable ones at `to`.
        unsafe { *t.add(i) = *f.add(i) };
    }
    to
}

// SAFETY: as for memcpy.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut c_void, from: *const c_void, n: usize) -> *mut c_void {
    let (t, f) = (to.cast::<u8>(), from.cast::<u8>());
    if (t as usize) <= (f as usize) {
        // SAFETY: as for memcpy; ascending order reads each byte before it is overwritten.
        return unsafe { memcpy(to, from, n) };
    }
    for i in (0..n).rev() {
        // SAFETY: as for memcpy; descending order because the ranges may overlap upwards.
        unsafe { *t.add(i) = *f.add(i) };
    }
    to
}

// SAFETY: as for memcpy.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut c_void, byte: c_int, n: usize) -> *mut c_void {
    let t = to.cast::<u8>();
    for i in 0..n {
        // SAFETY: the caller promises n writable bytes at `to`.
        unsafe { *t.add(i) = byte as u8 };
    }
    to
}

// SAFETY: as for memcpy.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const c_void, b: *const c_void, n: usize) -> c_int {
    let (a, b) = (a.cast::<u8>(), b.cast::<u8>());
    for i in 0..n {
        // SAFETY: the caller promises n readable bytes at both.
        let (x, y) = unsafe { (*a.add(i), *b.add(i)) };
        if x != y {
            return c_int::from(x) - c_int::from(y);
        }
    }
    0
}

// SAFETY: as for memcpy; bcmp only has to tell equal from unequal.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const c_void, b: *const c_void, n: usize) -> c_int {
    // SAFETY: the same promise, passed on.
    unsafe { memcmp(a, b, n) }
}

// SAFETY: strlen's C contract: `s` is NUL-terminated.
#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(s: *const u8) -> usize {
    let mut n = 0;
    // SAFETY: every byte up to and including the NUL is readable by that contract.
    while unsafe { *s.add(n) } != 0 {
        n += 1;
    }
    n
}
