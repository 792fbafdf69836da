//! Messages between rmcp and a server's pipes: `wire` reads and writes them, `contained_transport` is one contained server
//! as an rmcp transport, for hosts that want no set.

mod contained_transport;
mod wire;

pub use contained_transport::{ContainedTransport, TransportEnd};
pub(crate) use wire::{Input, Signs, Wire};
