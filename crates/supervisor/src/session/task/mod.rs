//! The one task of a session: turns whatever happens into a trigger, asks `life` what follows, and does it.
//!
//! | file | owns |
//! |---|---|
//! | `session` | what a session is made of, and its loop |
//! | `orders` | carrying out what `life` orders and what messages ask for |
//! | `client` | EOF, death and half-closes of the two sides |
//! | `clock` | timers, sleep, and what comes back from threads |
//! | `starting` | starting a server, or not |
//! | `ending` | the end of a server, of its tree, of the session |
//! | `requests` | what operators ask over the control socket |

mod client;
mod clock;
mod ending;
mod orders;
mod requests;
mod session;
mod starting;

pub(super) use session::{Command, Session, SessionParts};
