//! What a host holds of a server: a handle, the lease that a call takes, and why a call got no answer.
//!
//! Nothing here leads to a process: a handle that is kept for ever keeps no server alive. See [`crate::set`] for what does.

mod call_error;
mod lease;
mod server_handle;

pub use call_error::CallError;
pub use lease::Lease;
pub use server_handle::Handle;
