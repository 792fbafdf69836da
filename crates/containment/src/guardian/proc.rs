//! `/proc` and small texts, without allocation.

use core::ffi::CStr;

use crate::bare::call::{self, Errno, Fd};
use crate::shared::stat::Stat;

/// A short text built piece by piece; what does not fit is cut, which no path or line of ours comes near.
pub(crate) struct Line {
    bytes: [u8; 128],
    len: usize,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; 128], len: 0 }
    }

    pub(crate) fn text(mut self, text: &[u8]) -> Self {
        for byte in text {
            // The last byte stays zero, so that the text is always a C string too.
            if self.len < self.bytes.len() - 1 {
                self.bytes[self.len] = *byte;
                self.len += 1;
            }
        }
        self
    }

    pub(crate) fn number(self, n: u64) -> Self {
        let mut digits = [0_u8; 20];
        let mut at = digits.len();
        let mut n = n;
        loop {
            at -= 1;
            digits[at] = b'0' + (n % 10) as u8;
            n /= 10;
            if n == 0 {
                return self.text(&digits[at..]);
            }
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    pub(crate) fn as_path(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }
}

/// `/proc/PID/` and what comes after it.
pub(crate) fn path(pid: i32, rest: &[u8]) -> Line {
    Line::new().text(b"/proc/").number(pid as u64).text(b"/").text(rest)
}

/// The beginning of a file, as much as fits.
pub(crate) fn read_file<'a>(path: &CStr, into: &'a mut [u8]) -> Result<&'a [u8], Errno> {
    let file = call::openat(Fd::CWD, path, call::O_RDONLY)?;
    let mut len = 0;
    let read = loop {
        match call::read(file, &mut into[len..]) {
            Ok(0) => break Ok(()),
            Ok(n) => len += n,
            Err(Errno::INTR) => {}
            Err(error) => break Err(error),
        }
        if len == into.len() {
            break Ok(());
        }
    };
    call::close(file);
    read.map(|()| &into[..len])
}

/// The status line of a process; `None` if there is no such process (any more).
pub(crate) fn stat(pid: i32) -> Option<Stat> {
    let mut bytes = [0_u8; 512];
    Stat::parse(read_file(path(pid, b"stat").as_path(), &mut bytes).ok()?)
}

/// How a dead process ended, as a raw wait status; `None` if we may not know.
pub(crate) fn exit_status(pid: i32) -> Option<i32> {
    let mut bytes = [0_u8; 512];
    // The dead have no executable. Who may not look is told so before, and would read a status of 0.
    if call::read_link(path(pid, b"exe").as_path(), &mut bytes) != Err(Errno::NOENT) {
        return None;
    }
    crate::shared::stat::exit_status(read_file(path(pid, b"stat").as_path(), &mut bytes).ok()?)
}

/// Calls `each` with every number that is a name in the folder: processes in /proc, threads in a task folder.
pub(crate) fn numbers_in(folder: &CStr, mut each: impl FnMut(i32)) {
    names_in(Fd::CWD, folder, |_, name| {
        if let Some(n) = crate::shared::stat::number(name.to_bytes()).and_then(|n| i32::try_from(n).ok()) {
            each(n);
        }
    });
}

/// Calls `each` with the opened folder and every name in it that is a folder or may be one.
pub(crate) fn names_in(at: Fd, folder: &CStr, mut each: impl FnMut(Fd, &CStr)) {
    const DT_UNKNOWN: u8 = 0;
    const DT_DIR: u8 = 4;
    let Ok(dir) = call::openat(at, folder, call::O_RDONLY | call::O_DIRECTORY) else { return };
    let mut bytes = [0_u8; 2048];
    while let Ok(n @ 1..) = call::directory_entries(dir, &mut bytes) {
        let mut rest = &bytes[..n];
        // linux_dirent64 { ino: u64, off: i64, reclen: u16, type: u8, name: NUL-terminated }.
        while let [.., _] = rest
            && let (Some(len), Some(kind)) = (rest.get(16..18), rest.get(18))
        {
            let len = usize::from(u16::from_ne_bytes([len[0], len[1]]));
            let name = rest.get(19..len).and_then(|n| CStr::from_bytes_until_nul(n).ok());
            if let (Some(name), DT_UNKNOWN | DT_DIR) = (name, *kind)
                && !matches!(name.to_bytes(), b"." | b"..")
            {
                each(dir, name);
            }
            rest = rest.get(len.max(1)..).unwrap_or(&[]);
        }
    }
    call::close(dir);
}

/// Calls `each` with every number in a file of numbers with blanks between them, however long it is.
/// Whether the file could be read.
pub(crate) fn numbers_of(file: &CStr, mut each: impl FnMut(i32)) -> bool {
    let Ok(file) = call::openat(Fd::CWD, file, call::O_RDONLY) else { return false };
    numbers_from(file, &mut each);
    call::close(file);
    true
}

/// The same for a file that is open.
pub(crate) fn numbers_from(file: Fd, mut each: impl FnMut(i32)) {
    let mut bytes = [0_u8; 1024];
    let mut number: Option<i32> = None;
    loop {
        let n = match call::read(file, &mut bytes) {
            Ok(0) => break,
            Ok(n) => n,
            Err(Errno::INTR) => continue,
            Err(_) => break,
        };
        for byte in &bytes[..n] {
            match byte {
                b'0'..=b'9' => {
                    number =
                        Some(number.unwrap_or(0).saturating_mul(10).saturating_add(i32::from(byte - b'0')));
                }
                _ => {
                    if let Some(n) = number.take() {
                        each(n);
                    }
                }
            }
        }
    }
    if let Some(n) = number {
        each(n);
    }
}
