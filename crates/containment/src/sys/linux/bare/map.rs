//! Memory from the kernel.

use core::sync::atomic::AtomicU64;

use super::arch::{nr, syscall};
use super::call::{Errno, Fd, result};

const PROT_READ: usize = 1;
const PROT_WRITE: usize = 2;
const MAP_SHARED: usize = 1;
const MAP_PRIVATE: usize = 2;
const MAP_ANONYMOUS: usize = 0x20;
const MAP_NORESERVE: usize = 0x4000;

fn mmap(len: usize, prot: usize, flags: usize, fd: usize, offset: usize) -> Result<usize, Errno> {
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in use.
    result(unsafe { syscall(nr::MMAP, [0, len, prot, flags, fd, offset]) })
}

/// The first `slots` words of `fd`, shared with everyone who maps it.
pub(crate) fn shared_words(fd: Fd, slots: usize) -> Result<&'static [AtomicU64], Errno> {
    let at = mmap(slots * 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd.raw(), 0)?;
    // SAFETY: the mapping is that long, aligned to a page, never unmapped, and only ever accessed atomically.
    Ok(unsafe { core::slice::from_raw_parts(at as *const AtomicU64, slots) })
}

/// `len` bytes of `fd` from the page-aligned `offset`, read only and for good. The file's size is sealed, and nobody
/// writes to that part after the owner has.
pub(crate) fn read_only(fd: Fd, offset: usize, len: usize) -> Result<&'static [u8], Errno> {
    if len == 0 {
        return Ok(&[]);
    }
    let at = mmap(len, PROT_READ, MAP_SHARED, fd.raw(), offset)?;
    // SAFETY: the mapping is that long, and is never taken away.
    Ok(unsafe { core::slice::from_raw_parts(at as *const u8, len) })
}

/// A kind of value for which all zero bits are a value, so that fresh pages can hold it.
///
/// # Safety
/// The all-zero bit pattern must be a valid value of the type.
pub(crate) unsafe trait Zeroed: Copy {}
// SAFETY: zero is a number.
unsafe impl Zeroed for u64 {}
// SAFETY: a null pointer is a pointer.
unsafe impl Zeroed for *const core::ffi::c_char {}

/// `count` fresh zeroed values, never given back; pages that are not touched cost nothing.
pub(crate) fn scratch<T: Zeroed>(count: usize) -> Result<&'static mut [T], Errno> {
    let len = count.max(1) * size_of::<T>();
    let at = mmap(len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, usize::MAX, 0)?;
    // SAFETY: fresh anonymous pages are zero, long enough, page-aligned, and no other code knows the address.
    Ok(unsafe { core::slice::from_raw_parts_mut(at as *mut T, count) })
}
