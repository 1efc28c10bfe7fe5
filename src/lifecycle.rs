//! Receives the signals that end the process, and the signal that reloads files. The callers decide
//! how to react.

use std::fs;
use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal that ends the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// SIGHUP: the terminal was closed.
    Hangup,
    /// SIGINT: the user pressed Ctrl-C.
    Interrupt,
    /// SIGTERM: the system asks the process to end.
    Terminate,
}

impl StopSignal {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hangup => "SIGHUP",
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }

    /// Returns its number, which is the same on all systems.
    pub fn number(self) -> u8 {
        match self {
            Self::Hangup => 1,
            Self::Interrupt => 2,
            Self::Terminate => 15,
        }
    }

    fn listen(self) -> io::Result<(Self, Signal)> {
        Ok((self, signal(SignalKind::from_raw(self.number().into()))?))
    }
}

/// Receives the signals that end the process.
#[derive(Debug)]
pub struct StopSignals(Vec<(StopSignal, Signal)>);

impl StopSignals {
    /// Starts to listen for SIGTERM and SIGINT. From now on they no longer end the process by
    /// default.
    pub fn listen() -> io::Result<Self> {
        Ok(Self(vec![
            StopSignal::Terminate.listen()?,
            StopSignal::Interrupt.listen()?,
        ]))
    }

    /// Starts to listen for SIGHUP as well, which a closing terminal sends to its processes.
    /// Ignores SIGHUP if the process was started with `nohup`.
    pub fn listen_on_terminal() -> io::Result<Self> {
        let mut signals = Self::listen()?;
        if !ignores_hangup() {
            signals.0.push(StopSignal::Hangup.listen()?);
        }
        Ok(signals)
    }

    /// Waits for the next signal and returns it. Returns at once if a signal came since the last
    /// call.
    pub async fn next(&mut self) -> StopSignal {
        poll_fn(|context| {
            let come = self.0.iter_mut().find_map(|(which, signal)| {
                let has_come = signal.poll_recv(context).is_ready();
                has_come.then_some(*which)
            });
            come.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// Returns whether the process was started with SIGHUP ignored. Returns `false` if the system does
/// not show it.
fn ignores_hangup() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The lowest bit stands for signal 1, SIGHUP.
    ignored.is_some_and(|mask| mask & 1 != 0)
}

/// Receives SIGHUP.
#[derive(Debug)]
pub struct ReloadSignals {
    hangup: Signal,
}

impl ReloadSignals {
    /// Starts to listen. From now on the signal no longer ends the process.
    pub fn listen() -> io::Result<Self> {
        let hangup = signal(SignalKind::hangup())?;
        Ok(Self { hangup })
    }

    /// Waits for the next signal. Returns at once if a signal came since the last call.
    pub async fn next(&mut self) {
        self.hangup.recv().await;
    }
}
