//! A client that asks for something and hardly reads it, by a socket of its own with a small
//! buffer.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

/// The bytes of one read, and the pause after it: 64 kB a second.
const PIECE: usize = 6_400;
const PAUSE: Duration = Duration::from_millis(100);
const RECEIVE_BUFFER: u32 = 4_096;

/// Asks at `http://HOST:PORT` and reads a little at a time until the response ends. A refusal is an
/// error.
pub(super) async fn read(base_url: &str, key: &str, path: &str) -> Result<()> {
    let authority = base_url.trim_start_matches("http://");
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    let mut stream = socket.connect(authority.parse()?).await?;
    let head =
        format!("GET {path} HTTP/1.1\r\nhost: {authority}\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut piece = [0; PIECE];
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).await?;
    ensure!(begin.ends_with(b"200"), "refused: {}", String::from_utf8_lossy(&begin));
    while stream.read(&mut piece).await? > 0 {
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}
