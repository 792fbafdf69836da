//! Where a session is found while it lives: its registration, its control socket, and what sessions of the same server agree
//! on (superseding, limits, the memory of crashes). Sessions of every kind register here: of `moored run`, and of programs
//! that use `moored-client`. No SQL, no MCP, nothing is printed.
//!
//! | file | owns |
//! |---|---|
//! | `run_info`, `run_id` | what a session says of itself: the content of its registration |
//! | `registration` | registering a session of this process |
//! | `registered_run` | finding registered sessions, asking them, removing what killed ones left |
//! | [`control`] | the words of the control socket (pure) |
//! | `control_server` | its server side |
//! | `superseding` | whether a newer session has taken a server's place (pure) |
//! | `limit` | how many instances of a server may be awake, and making room for one more |
//! | `crash_memory` | crashes, remembered across sessions |
//! | [`boot_time`] | containment's: the clock that ages and starts are measured on |
//! | `private_files` | opening files that may have been swapped for others |
//!
//! # The runtime folder
//!
//! [`RuntimeDir`](moored_containment::RuntimeDir) says where it is: one folder per user, for that user alone, in memory on most
//! machines. What lives is known from the locks on the files in it, never from their content or age: **a lock (`flock`) that can
//! be taken means that the process that wrote the file is dead**. So a file with a lock gets its name only when it is locked, its
//! writer removes it while it still holds the lock, and everyone else takes the lock before removing it. Registering and looking
//! never wait for a lock.
//!
//! `RUN` is the id of a session ([`RunId`]), `SESSION` that of a containment: a server that sleeps and wakes has a new one each
//! time.
//!
//! | name | what it is | written by | lock held by | removed by |
//! |---|---|---|---|---|
//! | `SESSION.session` | containment's record of a process tree | the owner of the tree, before a child exists; then its guardians | the owner until the server has started, then the guardians | the outer guardian (else the inner one, else the owner) when the tree is gone; else `sweep`, with the lock, when it has ended what was left. It stays while kept processes live |
//! | `.SESSION.session.PID` | draft of a record | the owner | the owner | the owner; else `sweep`, if no process `PID` exists |
//! | `guardian-VERSION`, `guardian-….new` | the guardian's program, where it cannot be executed from memory, and its draft | the first owner that needs it | nobody | nobody: it is used again |
//! | `RUN.run` | the registration of a session ([`RunInfo`]) | `moored run`, or the host of a `moored-client` set | the same process, for as long as it is registered | the same process, when its session ends; else [`remove_dead`], whose caller writes its end into history. One of origin `client` has no history: [`RegisteredRun::all`] removes it too |
//! | `RUN.sock` | the session's control socket | the process that has `RUN.run` | (that of `RUN.run`) | together with `RUN.run`, before it |
//! | `.RUN.N.run.draft` | draft of a registration | the process that registers | the same | the same; else [`remove_dead`], with the lock |
//! | `KEY.room` | the turn to count the instances of a server | a session that is to start or wake under `--max-instances` | the same, while it counts and makes room | the same; else [`remove_dead`], with the lock |
//! | `KEY.PID.TICKS.crashes` | the crashes of a config entry under one client process ([`CrashMemory`]) | `moored run`, a line per crash | nobody: lines are appended whole | a session whose server has answered `initialize`; else the housekeeping of any session, when no crash in it counts any more. Meant to outlive sessions |
//! | `.RUN.WRITER.events` | draft of a spool file | a writer of history that could not write | the writer | the writer; else taken in by the next process that opens history, with the lock |
//! | `RUN.WRITER.events` | events that are not in history yet | the same, by renaming the draft | nobody | the writer, when history has them; else renamed by who takes it in; the oldest beyond 1000 by any writer |
//! | `ID.taken` | a spool file that is being taken in | the process that opens history | the same | the same, when history has it; else the next one, with the lock |
//!
//! Housekeeping (of each `moored run`, when its server has started; of a program with many sessions, for all of them) calls
//! [`remove_dead`], `sweep` and [`CrashMemory::forget_old`] on every folder of the user. A file that cannot be opened or
//! understood is left alone.
//!
//! Limits of this: a lock is shared with a fork that has not executed another program, so the registration of a `moored-client`
//! host that was killed is shown until such a fork of it has ended too. And any process of the same user can write these files:
//! before a process is signalled for what a file says, the kernel is asked whether that process holds the file's lock.
#![deny(rustdoc::broken_intra_doc_links)]

pub mod control;
mod control_server;
mod crash_memory;
mod limit;
mod private_files;
mod registered_run;
mod registration;
mod run_id;
mod run_info;
mod server_info;
mod superseding;

/// Times for people, as a registration and a [`Status`](control::Status) have them.
pub use jiff::Timestamp;
pub use moored_containment::process::boot_time;

pub use control_server::{ControlRequest, ControlServer};
pub use crash_memory::{CrashLoop, CrashMemory};
pub use limit::{NoRoom, make_room, make_room_for_wake};
pub use private_files::{NOFOLLOW_NONBLOCK, open_regular_file, private_file};
pub use registered_run::{RegisteredRun, remove_dead};
pub use registration::RunRegistration;
pub use run_id::{ParseRunIdError, RunId};
pub use run_info::{Client, Origin, RunInfo};
pub use server_info::{Health, Instance, PidFileInfo, ServerInfo, ServerProcess, Told, read_pid_file};
pub use superseding::{APART, Superseded};
