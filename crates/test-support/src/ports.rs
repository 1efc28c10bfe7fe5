//! Ports that no other test takes meanwhile.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::net::TcpSocket;

/// Below the ports that the kernel chooses by itself, and below those of the servers that all tests
/// share.
const FIRST: u32 = 10_000;
const COUNT: u32 = 5_000;

/// Finds a port for a server that the test starts, and may stop and start again.
pub fn free_port() -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = process::id().wrapping_mul(37) + TAKEN.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(FIRST + number % COUNT).unwrap();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// An address that refuses connections until this is dropped: it is taken, and nothing listens
/// there.
#[derive(Debug)]
pub struct RefusingAddress {
    socket: TcpSocket,
}

impl RefusingAddress {
    pub fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        Self { socket }
    }

    pub fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }
}
