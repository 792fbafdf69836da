//! Reading a log: its last lines, and what comes, also over a rotation. Only a command that shows logs does this; it may
//! look again every now and then, which a `run` must not.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::generation;

const BLOCK: usize = 64 << 10;

/// The last lines of a log, those that were rotated away among them, and whatever comes after exactly these. A log that
/// is not there yet is empty.
///
/// # Errors
/// If it cannot be read.
pub fn tail(path: &Path, lines: usize) -> io::Result<(Vec<u8>, Follow)> {
    let files = generations(path)?;
    let mut follow = Follow { path: path.to_owned(), current: None };
    let mut parts: Vec<Vec<u8>> = Vec::new();
    let mut left = lines;
    for (at, file) in files.iter().enumerate().rev() {
        let end = file.metadata()?.len();
        if at + 1 == files.len() {
            follow.current = Some(Position { file: file.try_clone()?, at: end });
        }
        if left == 0 {
            break;
        }
        // A rotation may cut a line in two, so lines are counted over all files as if they were one.
        let is_last = parts.iter().all(Vec::is_empty);
        let (bytes, found) = last_lines(file, end, left, is_last)?;
        left -= found;
        parts.push(bytes);
    }
    parts.reverse();
    Ok((parts.concat(), follow))
}

/// The last lines before `end`, and how many newlines were counted for it. A newline at the end of all closes a
/// line and begins none.
fn last_lines(file: &File, end: u64, lines: usize, is_last: bool) -> io::Result<(Vec<u8>, usize)> {
    let mut tail: Vec<u8> = Vec::new();
    let (mut at, mut found) = (end, 0);
    while at > 0 {
        let size = BLOCK.min(usize::try_from(at).unwrap_or(BLOCK));
        at -= size as u64;
        let mut block = vec![0; size];
        file.read_exact_at(&mut block, at)?;
        for newline in memchr::memrchr_iter(b'\n', &block) {
            if is_last && at + newline as u64 + 1 == end {
                continue;
            }
            found += 1;
            if found == lines {
                let mut bytes = block.split_off(newline + 1);
                bytes.append(&mut tail);
                return Ok((bytes, found));
            }
        }
        block.append(&mut tail);
        tail = block;
    }
    Ok((tail, found))
}

/// What comes.
#[derive(Debug)]
pub struct Follow {
    path: PathBuf,
    current: Option<Position>,
}

#[derive(Debug)]
struct Position {
    file: File,
    at: u64,
}

impl Follow {
    /// How long to wait between two looks.
    pub const REST: Duration = Duration::from_millis(200);

    /// What has come since the last look; may be nothing. What was rotated away more often than there are files is lost.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&mut self) -> io::Result<Vec<u8>> {
        let files = generations(&self.path)?;
        let ours = self.current.as_ref().map(|position| position.file.metadata()).transpose()?;
        let is_ours = |file: &File| {
            let theirs = file.metadata().ok();
            theirs.zip(ours.as_ref()).is_some_and(|(a, b)| (a.ino(), a.dev()) == (b.ino(), b.dev()))
        };
        let mut bytes = Vec::new();
        if let Some(position) = &mut self.current {
            position.read_on(&mut bytes)?;
        }
        // Everything newer than ours; all of them if ours is gone.
        let newer = files.iter().position(is_ours).map_or(0, |at| at + 1);
        for file in files.into_iter().skip(newer) {
            let mut position = Position { file, at: 0 };
            position.read_on(&mut bytes)?;
            self.current = Some(position);
        }
        Ok(bytes)
    }
}

impl Position {
    fn read_on(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        if self.file.metadata()?.len() < self.at {
            // It was emptied, and begins again.
            self.at = 0;
        }
        let mut block = vec![0; BLOCK];
        loop {
            let count = self.file.read_at(&mut block, self.at)?;
            if count == 0 {
                return Ok(());
            }
            bytes.extend_from_slice(&block[..count]);
            self.at += count as u64;
        }
    }
}

/// The files of a log, the oldest first. They may be rotated while they are opened: if the newest is another one
/// afterwards, they are opened again; one that was met under two names counts once; and a name may be missing.
fn generations(path: &Path) -> io::Result<Vec<File>> {
    loop {
        let before = inode(path)?;
        let mut files: Vec<(u64, File)> = Vec::new();
        let (mut ago, mut missing) = (0, 0);
        while missing < 2 {
            match File::open(generation(path, ago)) {
                Ok(file) => {
                    let inode = file.metadata()?.ino();
                    files.retain(|(known, _)| *known != inode);
                    files.push((inode, file));
                    missing = 0;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => missing += 1,
                Err(error) => return Err(error),
            }
            ago += 1;
        }
        if inode(path)? == before {
            return Ok(files.into_iter().rev().map(|(_, file)| file).collect());
        }
    }
}

fn inode(path: &Path) -> io::Result<Option<u64>> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
