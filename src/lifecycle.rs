//! The signals that end the process, and the one that has it read files again. What they do is the affair of whoever waits for them.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Hears SIGTERM and SIGINT.
#[derive(Debug)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Begins to listen; from now on the signals no longer end the process by themselves.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal. One that came since the last call counts.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => (),
            _ = self.interrupt.recv() => (),
        }
    }
}

/// Hears SIGHUP.
#[derive(Debug)]
pub struct ReloadSignals {
    hangup: Signal,
}

impl ReloadSignals {
    /// Begins to listen; from now on the signal no longer ends the process.
    pub fn listen() -> io::Result<Self> {
        let hangup = signal(SignalKind::hangup())?;
        Ok(Self { hangup })
    }

    /// Waits for the next signal. One that came since the last call counts.
    pub async fn next(&mut self) {
        self.hangup.recv().await;
    }
}
