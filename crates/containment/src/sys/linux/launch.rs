//! The guardian's image, and becoming it in a child.
//!
//! The image is a few pages, embedded in the library and run from a memfd, so that it works in any program: no special
//! `main`, no file to install. Where executing a memfd is forbidden (`vm.memfd_noexec=2`, some policies) it is run from
//! a file in the runtime folder instead.
//!
//! The child is made by `clone(CLONE_VM | CLONE_VFORK)`, as posix_spawn does it: nothing of the owner is copied, however
//! big it is, and no `pre_exec` runs in a copy of a multi-threaded program. Unlike posix_spawn it yields a pidfd that
//! was opened together with the child.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::path::Path;
use std::ptr;
use std::sync::Mutex;

use rustix::fs::{MemfdFlags, SealFlags};

use super::process::GuardianChild;

static IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guardian"));

/// How long the image is.
pub(crate) fn image_size() -> usize {
    IMAGE.len()
}

/// The opened image, shared by all sessions of this process.
static OPENED: Mutex<Option<OwnedFd>> = Mutex::new(None);

/// Enough for a few calls and an exec; the kernel builds the new program's stack elsewhere.
const STACK: usize = 32 * 1024;

/// Starts the guardian with exactly these files open, and nothing in its environment. `fallback` is where the image may
/// be put if it cannot be run from memory.
pub(crate) fn launch(
    session: &str,
    board: BorrowedFd<'_>,
    files: &[BorrowedFd<'_>],
    fallback: Option<&Path>,
) -> io::Result<GuardianChild> {
    let args = [
        CString::from(c"moored-guardian"),
        CString::new(session)?,
        CString::new(board.as_raw_fd().to_string())?,
    ];
    let mut open = vec![board.as_raw_fd()];
    open.extend(files.iter().map(AsRawFd::as_raw_fd));

    let image = image_in_memory()?;
    match clone_and_exec(image.as_fd(), &args, &open) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM)) => {
            let Some(folder) = fallback else { return Err(error) };
            clone_and_exec(image_in_file(folder)?.as_fd(), &args, &open)
        }
        other => other,
    }
}

fn image_in_memory() -> io::Result<OwnedFd> {
    let mut opened = OPENED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(image) = &*opened {
        return image.try_clone();
    }
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Before Linux 6.3 there is no such flag, and every memfd can be executed.
    let memfd = rustix::fs::memfd_create(c"moored-guardian", flags | MemfdFlags::EXEC)
        .or_else(|_| rustix::fs::memfd_create(c"moored-guardian", flags))?;
    let mut file = File::from(memfd);
    file.write_all(IMAGE)?;
    rustix::fs::fcntl_add_seals(
        &file,
        SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL,
    )?;
    let image = OwnedFd::from(file);
    let copy = image.try_clone()?;
    *opened = Some(image);
    Ok(copy)
}

/// The image as a file of this version, made once. Only this user can write to the folder.
fn image_in_file(folder: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let path = folder.join(concat!("guardian-", env!("CARGO_PKG_VERSION")));
    if std::fs::read(&path).is_ok_and(|bytes| bytes == IMAGE) {
        return File::open(path);
    }
    let draft = folder.join(format!("guardian-{:016x}.new", super::files::random_u64()?));
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o700).open(&draft)?;
    file.write_all(IMAGE)?;
    // A file that is open for writing cannot be executed.
    drop(file);
    std::fs::rename(&draft, &path)?;
    File::open(path)
}

/// What the child needs, prepared before it exists: it may not allocate.
struct Recipe<'a> {
    image: RawFd,
    args: &'a [*const libc::c_char],
    open: &'a [RawFd],
    error: libc::c_int,
}

fn clone_and_exec(image: BorrowedFd<'_>, args: &[CString], open: &[RawFd]) -> io::Result<GuardianChild> {
    let mut list: Vec<*const libc::c_char> = args.iter().map(|arg| arg.as_ptr()).collect();
    list.push(ptr::null());
    let mut recipe = Recipe { image: image.as_raw_fd(), args: &list, open, error: 0 };
    let mut stack = vec![0_u128; STACK / size_of::<u128>()];
    let mut pidfd: libc::c_int = -1;

    // SAFETY: the mask is written before it is read, by sigfillset; pthread_sigmask only touches this thread.
    let old_mask = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut old: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
        old
    };
    // SAFETY: CLONE_VFORK suspends this thread until the child has executed or exited, so the stack, the recipe and
    // everything that it points to outlive the child's use of them. The child runs on its own stack, with all signals
    // blocked, so that no handler of this program runs in it; `become_guardian` makes system calls only.
    let (pid, error) = unsafe {
        let top = stack.as_mut_ptr().add(stack.len()).cast();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
        let pid = libc::clone(become_guardian, top, flags, (&raw mut recipe).cast(), &raw mut pidfd);
        (pid, io::Error::last_os_error())
    };
    // SAFETY: `old_mask` is what this thread had.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const old_mask, ptr::null_mut()) };

    if pid < 0 {
        return Err(error);
    }
    // SAFETY: the kernel stored a fresh fd that nobody else owns.
    let child = GuardianChild::new(unsafe { OwnedFd::from_raw_fd(pidfd) });
    // SAFETY: a plain read of our own variable; the child, which wrote it, has executed or is gone.
    let failed = unsafe { ptr::read_volatile(&raw const recipe.error) };
    if failed != 0 {
        child.reap(std::time::Duration::from_secs(3));
        return Err(io::Error::from_raw_os_error(failed));
    }
    Ok(child)
}

/// In the child, on the parent's memory: nothing but system calls.
extern "C" fn become_guardian(recipe: *mut libc::c_void) -> libc::c_int {
    const EMPTY: &CStr = c"";
    // SAFETY: the parent passed its recipe and is suspended; nobody else touches it. errno is the parent's own, and the
    // parent reads its own result before it could matter.
    unsafe {
        let recipe = &mut *recipe.cast::<Recipe<'_>>();
        for fd in recipe.open {
            libc::fcntl(*fd, libc::F_SETFD, 0);
        }
        let no_environment: [*const libc::c_char; 1] = [ptr::null()];
        libc::syscall(
            libc::SYS_execveat,
            recipe.image,
            EMPTY.as_ptr(),
            recipe.args.as_ptr(),
            no_environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        );
        ptr::write_volatile(&raw mut recipe.error, *libc::__errno_location());
        libc::_exit(127)
    }
}
