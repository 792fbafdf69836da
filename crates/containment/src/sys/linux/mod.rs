//! Linux, for the owner's side. (`bare/` is the guardian's side, compiled into the guardian only.)
//!
//! - `launch`: the guardian's image, and becoming it in a child, from any program;
//! - `shared`: the memory that owner and guardians share;
//! - `wire`: the socket between them;
//! - `process`: pidfds: opening, signalling, waiting;
//! - `files`: pipes, locks, and the folder of records;
//! - `procfs`: what `/proc` tells;
//! - `reactor`: a file of ours, watched by tokio;
//! - `cgroup`: finding the v2 hierarchy, making and removing a leaf.

mod cgroup;
mod files;
mod launch;
mod process;
mod procfs;
#[cfg(feature = "tokio")]
mod reactor;
mod shared;
mod wire;

pub(crate) use cgroup::{Leaf, NoLeaf, adopt_leaf, leaf_path, make_leaf};
pub(crate) use files::{
    Folder, Shortage, UserFolder, lock_exclusively, make_private_folder, open_null, open_private_folder,
    open_regular_file, out_of_files, own_user, pipe, random_u64, stdio, user_folders,
};
#[cfg(feature = "tokio")]
pub(crate) use files::{read_fd, set_nonblocking, write_fd};
pub(crate) use launch::{image_size, launch};
pub(crate) use process::{
    GuardianChild, ProcessFd, file_size_limit, inherited_cookie, own_pidfd, pid_of_pidfd,
    sealing_is_available, unblock_signals, wait_first_readable, wait_readable,
};
pub(crate) use procfs::{
    boot_id, command_line, cookie_of, highest_pid, last_pid, lockers, name_of, now_in_nanos, pid_namespace,
    pid_namespace_is_gone, proc_is_ours, process_ids, program_of, since_boot, stat_line, status_uid,
    ticks_per_second,
};
#[cfg(feature = "tokio")]
pub(crate) use reactor::{watch, watch_process};
pub(crate) use shared::SharedBoard;
pub(crate) use wire::{Heard, Socket, socket_pair};
