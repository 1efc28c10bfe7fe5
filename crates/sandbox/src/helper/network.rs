//! The network of a command: a loopback interface of its own, and on it one listener.
//!
//! The helper makes a network namespace and hands the listener to the service, which stays outside.
//! So the service accepts the command's connections, and the command can reach nothing else: its
//! namespace has no other interface, and nobody else can reach the listener.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sched::{CloneFlags, unshare};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv,
    sendmsg, sendto, socket_with,
};

use super::super::protections::PROXY_ADDRESS;
use super::{Step as _, StepError};

/// The first interface of every network namespace.
const LOOPBACK_INDEX: i32 = 1;

/// Moves the calling process, which must be in a user namespace of its own, into a network of its
/// own. Returns the one listener there.
pub(super) fn enter() -> Result<TcpListener, StepError> {
    unshare(CloneFlags::CLONE_NEWNET).step("make a network")?;
    bring_loopback_up().step("bring the loopback interface up")?;
    TcpListener::bind(PROXY_ADDRESS).step("listen on the loopback interface")
}

/// Sends the listener over the socket to the service.
pub(super) fn hand_over(listener: &TcpListener, service: impl AsFd) -> io::Result<()> {
    let listener: OwnedFd = listener.as_fd().try_clone_to_owned()?;
    let files: [BorrowedFd<'_>; 1] = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::Error::other("the message has no room"));
    }
    sendmsg(service, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Asks the kernel by netlink, since there is no other safe way.
fn bring_loopback_up() -> io::Result<()> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    sendto(
        &socket,
        &set_link_up(LOOPBACK_INDEX),
        SendFlags::empty(),
        &SocketAddrNetlink::new(0, 0),
    )?;
    let mut response = [0; 1024];
    let (length, _) = recv(&socket, &mut response[..], RecvFlags::empty())?;
    match response.get(..length).and_then(error_of) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        None => Err(io::Error::other("the kernel's response is not understood")),
    }
}

/// Encodes `RTM_NEWLINK`, which sets the flag "up" of an interface and asks for a response.
fn set_link_up(index: i32) -> Vec<u8> {
    const LENGTH: u32 = 32;
    const RTM_NEWLINK: u16 = 16;
    const REQUEST_AND_ACK: u16 = 5;
    const UP: u32 = 1;
    let mut message = Vec::new();
    message.extend(LENGTH.to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend(REQUEST_AND_ACK.to_ne_bytes());
    // The number of the message and of the sender.
    message.extend([0; 8]);
    // Any family and any type.
    message.extend([0; 4]);
    message.extend(index.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    // The flags that are to change.
    message.extend(UP.to_ne_bytes());
    message
}

/// Reads the negative error number of a response of the type `NLMSG_ERROR`; 0 is success.
fn error_of(response: &[u8]) -> Option<i32> {
    const NLMSG_ERROR: u16 = 2;
    let kind = u16::from_ne_bytes(response.get(4..6)?.try_into().ok()?);
    let error = i32::from_ne_bytes(response.get(16..20)?.try_into().ok()?);
    (kind == NLMSG_ERROR).then_some(error)
}
