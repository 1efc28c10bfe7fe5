//! The signals that end the process, and the one that reloads files. The callers decide what to do.

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
    /// SIGINT: somebody pressed Ctrl-C.
    Interrupt,
    /// SIGTERM: the process shall end.
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
    /// Begins to listen for SIGTERM and SIGINT; from now on they no longer end the process by
    /// themselves.
    pub fn listen() -> io::Result<Self> {
        Ok(Self(vec![
            StopSignal::Terminate.listen()?,
            StopSignal::Interrupt.listen()?,
        ]))
    }

    /// Begins to listen for SIGHUP as well, by which a terminal that is closed ends what was
    /// started from it. What was started below `nohup` outlives it.
    pub fn listen_on_terminal() -> io::Result<Self> {
        let mut signals = Self::listen()?;
        if !ignores_hangup() {
            signals.0.push(StopSignal::Hangup.listen()?);
        }
        Ok(signals)
    }

    /// Waits for the next signal and returns it. One that came since the last call counts.
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

/// Tells whether the process was started to ignore SIGHUP. Where the system does not show that, it
/// was not.
fn ignores_hangup() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The first bit is that of the signal with the number 1.
    ignored.is_some_and(|mask| mask & 1 != 0)
}

/// Receives SIGHUP.
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
