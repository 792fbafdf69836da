//! The guardian: a small process that ends a tree when its owner dies.
//!
//! ```text
//! owner ── outer guardian ── inner guardian ── server ─▶ its tree
//! ```
//!
//! Both guardians are this program; the inner one is a fork of the outer. Each is a subreaper in a session of its own,
//! with every signal blocked that can be, and single-threaded. The inner one starts the server, collects what falls to
//! it, and runs the ladder when the owner asks for an end, or when the owner, the outer guardian or the server dies.
//! The outer one waits for the inner, and is there for two cases: the inner was killed, so that its orphans fall to the
//! outer, which goes on with the same ladder; or the inner is done, and what is left is to check, to run `on_end`, to
//! clean up and to report. If the outer was killed, the inner does that too.
//!
//! It keeps no policy: what to run, what to spare and how long to wait stands on the board (`shared/board.rs`), written by the
//! owner before the guardian exists. It has no heap, no libc and no unsafe code of its own (see `sys/linux/bare`).
//!
//! - `session`: the board and the files that the owner handed over; the strings behind the board;
//! - `outer`, `inner`: the two roles;
//! - `watch`: the loop that runs the ladder, the same for both; `act`: what each step does;
//! - `spawn`: bringing the server to its exec;
//! - `held`: processes that are proven to be of the session; `tree`: finding and signalling them;
//! - `keep`: what is meant to live on;
//! - `leaf`: the cgroup;
//! - `finish`: after the tree: `on_end`, the record, the report;
//! - `proc`: `/proc` without allocation.
#![no_std]
#![no_main]
#![no_builtins]
#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "the guardian's kernel interface is part of sys")]
#[path = "../sys/linux/bare/mod.rs"]
mod bare;
#[allow(dead_code, reason = "compiled into the library too, which uses the rest")]
#[path = "../shared/mod.rs"]
mod shared;

mod act;
mod finish;
mod held;
mod inner;
mod keep;
mod leaf;
mod outer;
mod proc;
mod session;
mod spawn;
mod tree;
mod watch;

/// `moored-guardian ID BOARD_FD`; started by the library only.
fn main(args: bare::Args) -> i32 {
    let board = args.get(2).and_then(|fd| shared::stat::number(fd.to_bytes()));
    match board.and_then(session::Session::open) {
        Some(session) => outer::run(session),
        None => 64,
    }
}
