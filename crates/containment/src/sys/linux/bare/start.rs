//! From the first instruction to `crate::main`, and what a panic does.

use core::ffi::CStr;

use super::call;

/// The program's arguments, as the kernel laid them out.
#[derive(Clone, Copy)]
pub(crate) struct Args {
    count: usize,
    first: *const *const core::ffi::c_char,
}

impl Args {
    /// The `i`th argument, if there are that many.
    pub(crate) fn get(self, i: usize) -> Option<&'static CStr> {
        if i >= self.count {
            return None;
        }
        // SAFETY: the kernel put `count` pointers to NUL-terminated strings there, for the life of the process.
        Some(unsafe { CStr::from_ptr(*self.first.add(i)) })
    }
}

/// Called by the entry point with the address of the kernel's argument block.
pub(super) extern "C" fn start(block: *const usize) -> ! {
    // SAFETY: the block begins with the argument count, then the pointers.
    let args = unsafe { Args { count: *block, first: block.add(1).cast() } };
    call::exit(crate::main(args))
}

/// A panic is a defect of the guardian. It ends at once, and its twin sees that and ends the tree: that is what two
/// guardians are for. The code tells it apart from every other end.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    call::exit(111)
}

/// The precompiled `core` refers to it; nothing here unwinds.
// SAFETY: the name is the one that `core` asks for, and nothing else in the program defines it.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
