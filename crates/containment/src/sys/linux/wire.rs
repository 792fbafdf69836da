//! The socket between owner and guardians: short packets, and one file with the first.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendFlags,
    SocketFlags, SocketType, recvmsg, sendmsg,
};

use crate::shared::board::packet;

/// The owner's end.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

/// What a guardian said.
#[derive(Debug)]
pub(crate) enum Heard {
    /// Nothing yet.
    Nothing,
    /// A packet, and the file that came with it.
    Packet(u64, Option<OwnedFd>),
    /// The other end is closed.
    Closed,
}

/// Both ends; the second is for the guardians.
pub(crate) fn socket_pair() -> io::Result<(Socket, OwnedFd)> {
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    Ok((Socket(ours), theirs))
}

impl Socket {
    /// Takes the next packet, if there is one; never waits.
    pub(crate) fn hear(&self) -> io::Result<Heard> {
        let mut bytes = [0_u8; packet::LONGEST * 8];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let message = loop {
            match recvmsg(&self.0, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
                // A reset is told once, when a guardian ended with a request of ours unread; what it had said before
                // is still there to be read.
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNRESET) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(Heard::Nothing),
                other => break other?,
            }
        };
        if message.bytes == 0 {
            return Ok(Heard::Closed);
        }
        let file = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        let tag = bytes.first_chunk().map_or(0, |first: &[u8; 8]| u64::from_ne_bytes(*first));
        Ok(Heard::Packet(tag, file))
    }

    /// Sends one packet; an error means that the other end is closed.
    pub(crate) fn tell(&self, words: [u64; packet::LONGEST]) -> io::Result<()> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut nothing = SendAncillaryBuffer::default();
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut nothing, flags)?;
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(feature = "tokio")]
impl std::os::fd::AsRawFd for Socket {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.0.as_raw_fd()
    }
}
