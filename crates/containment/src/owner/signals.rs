//! Hearing signals, for an owner that ends its servers when it is told to end. What they mean is the owner's business.

use crate::sys;

/// Lets every signal reach this thread, and those that it starts. The program that started this one may have blocked some, and
/// that is inherited: an owner whose SIGTERM is blocked would never hear that it is to end. To be called when handlers are in
/// place: what was sent meanwhile comes at once. The servers have nothing blocked in any case.
pub fn unblock_signals() {
    sys::unblock_signals();
}
