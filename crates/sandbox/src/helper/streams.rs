//! Moves bytes between the service and the command, and notices when either closes its end.
//!
//! Nothing here blocks: while the service is slow, the command waits and is still supervised.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;

use super::super::wire;

/// The content of a frame is at most this long.
const PIECE_BYTES: usize = 64 << 10;
/// The most bytes of one read.
const READ_BYTES: usize = 16 << 10;
/// The command waits while the service has this much to read.
const MAX_PENDING: usize = 1 << 20;

/// The pipes of one command.
#[derive(Debug)]
pub(super) struct Streams {
    /// Open as long as the service wants the command to run.
    control: Option<File>,
    service: File,
    /// Frames that the service has not read yet.
    pending: Vec<u8>,
    stdin: Option<ChildStdin>,
    /// Whether the service may send more input.
    input_stays_open: bool,
    input: Vec<u8>,
    written: usize,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// The bytes that the command may still print.
    allowance: u64,
    overflowed: bool,
    report: Report,
}

/// The beginning of standard error: the report of a stage that failed, or output of the command.
#[derive(Debug)]
enum Report {
    Undecided { token: Vec<u8>, begun: Vec<u8> },
    OfStage(Vec<u8>),
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Main,
    Control,
    Service,
    Stdin,
    Stdout,
    Stderr,
}

impl Streams {
    /// Takes over the pipes of a stage that was just started. `input` begins with its task.
    pub(super) fn new(
        (control, service): (File, File),
        child: &mut Child,
        (input, input_stays_open): (Vec<u8>, bool),
        allowance: u64,
        token: &str,
    ) -> io::Result<Self> {
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let report = Report::Undecided {
            token: token.as_bytes().to_vec(),
            begun: Vec::new(),
        };
        ioctl_fionbio(&service, true)?;
        for file in [
            stdin.as_ref().map(|file| file.as_fd()),
            stdout.as_ref().map(|file| file.as_fd()),
        ]
        .into_iter()
        .chain([stderr.as_ref().map(|file| file.as_fd())])
        .flatten()
        {
            ioctl_fionbio(file, true)?;
        }
        Ok(Self {
            control: Some(control),
            service,
            pending: Vec::new(),
            stdin,
            input_stays_open,
            input,
            written: 0,
            stdout,
            stderr,
            allowance,
            overflowed: false,
            report,
        })
    }

    /// Waits until something can be moved, moves it, and returns whether `main` has ended.
    /// Does not notice that if there is no descriptor of it.
    pub(super) fn move_some(&mut self, main: Option<BorrowedFd<'_>>, timeout: Duration) -> io::Result<bool> {
        let ready = self.ready(main, Some(timeout))?;
        self.move_ready(&ready)?;
        Ok(ready.contains(&Source::Main))
    }

    /// Returns whether the service has closed its end: it cancelled the command or died.
    pub(super) fn is_cancelled(&self) -> bool {
        self.control.is_none()
    }

    /// Returns whether the command printed more than it may.
    pub(super) fn has_overflowed(&self) -> bool {
        self.overflowed
    }

    /// Reads the rest of the output after every process has ended. Returns the report of a stage
    /// that failed.
    pub(super) fn drain(&mut self) -> io::Result<Option<String>> {
        self.stdin = None;
        self.pump_stdout(usize::MAX)?;
        self.pump_stderr(usize::MAX)?;
        let report = std::mem::replace(&mut self.report, Report::None);
        match report {
            Report::OfStage(report) => Ok(Some(String::from_utf8_lossy(&report).into_owned())),
            Report::Undecided { begun, .. } => {
                self.forward(wire::STDERR, &begun)?;
                Ok(None)
            }
            Report::None => Ok(None),
        }
    }

    /// Sends the last frame and waits until the service has read everything.
    pub(super) fn finish(&mut self, end: &[u8]) -> io::Result<()> {
        self.pending.extend(end);
        while !self.pending.is_empty() {
            let ready = self.ready(None, None)?;
            if ready.contains(&Source::Service) {
                self.flush()?;
            }
            if ready.contains(&Source::Control) {
                self.read_control();
            }
        }
        Ok(())
    }

    fn ready(&self, main: Option<BorrowedFd<'_>>, timeout: Option<Duration>) -> io::Result<Vec<Source>> {
        let (mut sources, mut files) = (Vec::with_capacity(6), Vec::with_capacity(6));
        let mut watch = |source, file, events| {
            sources.push(source);
            files.push(PollFd::from_borrowed_fd(file, events));
        };
        if let Some(main) = main {
            watch(Source::Main, main, PollFlags::IN);
        }
        if let Some(control) = &self.control {
            let has_room = self.unwritten() < MAX_PENDING;
            let events = if has_room { PollFlags::IN } else { PollFlags::RDHUP };
            watch(Source::Control, control.as_fd(), events);
        }
        if !self.pending.is_empty() {
            watch(Source::Service, self.service.as_fd(), PollFlags::OUT);
        }
        if let Some(stdin) = &self.stdin
            && (!self.input_stays_open || self.unwritten() > 0)
        {
            watch(Source::Stdin, stdin.as_fd(), PollFlags::OUT);
        }
        if self.pending.len() < MAX_PENDING {
            if let Some(stdout) = &self.stdout {
                watch(Source::Stdout, stdout.as_fd(), PollFlags::IN);
            }
            if let Some(stderr) = &self.stderr {
                watch(Source::Stderr, stderr.as_fd(), PollFlags::IN);
            }
        }
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut files, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = files.iter().map(|file| !file.revents().is_empty());
        Ok(sources
            .iter()
            .zip(is_ready)
            .filter_map(|(source, is_ready)| is_ready.then_some(*source))
            .collect())
    }

    fn move_ready(&mut self, ready: &[Source]) -> io::Result<()> {
        for source in ready {
            match source {
                Source::Main => {}
                Source::Control => self.read_control(),
                Source::Service => self.flush()?,
                Source::Stdin => self.feed(),
                Source::Stdout => self.pump_stdout(PIECE_BYTES)?,
                Source::Stderr => self.pump_stderr(PIECE_BYTES)?,
            }
        }
        // Most often there is room: this saves a round.
        if self.pending.is_empty() { Ok(()) } else { self.flush() }
    }

    /// Reads more input for the command, and notices the end. Without room for input, only the end
    /// makes it ready.
    fn read_control(&mut self) {
        let has_room = self.unwritten() < MAX_PENDING;
        let Some(control) = &mut self.control else { return };
        let mut piece = [0; READ_BYTES];
        let read = control.read(&mut piece).unwrap_or(0);
        if read == 0 || !has_room {
            self.control = None;
        }
        if self.input_stays_open && self.stdin.is_some() {
            self.input.drain(..self.written);
            self.written = 0;
            self.input.extend(piece.get(..read).unwrap_or_default());
        }
    }

    fn unwritten(&self) -> usize {
        self.input.len().saturating_sub(self.written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.service.write(&self.pending) {
            Ok(written) => drop(self.pending.drain(..written)),
            Err(error) if is_temporary(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Writes to the command's standard input, and closes it at the end.
    fn feed(&mut self) {
        let Some(stdin) = &mut self.stdin else { return };
        match stdin.write(self.input.get(self.written..).unwrap_or_default()) {
            Ok(written) => self.written += written,
            Err(error) if is_temporary(&error) => {}
            // The command reads no further.
            Err(_) => {
                self.stdin = None;
                self.written = self.input.len();
            }
        }
        if self.written == self.input.len() {
            if !self.input_stays_open {
                self.stdin = None;
            }
            self.input = Vec::new();
            self.written = 0;
        }
    }

    fn pump_stdout(&mut self, at_most: usize) -> io::Result<()> {
        let (bytes, is_open) = read_some(self.stdout.as_mut(), at_most);
        if !is_open {
            self.stdout = None;
        }
        self.forward(wire::STDOUT, &bytes)
    }

    fn pump_stderr(&mut self, at_most: usize) -> io::Result<()> {
        let (bytes, is_open) = read_some(self.stderr.as_mut(), at_most);
        if !is_open {
            self.stderr = None;
        }
        match &mut self.report {
            Report::None => self.forward(wire::STDERR, &bytes),
            Report::OfStage(report) => {
                report.extend(bytes);
                Ok(())
            }
            Report::Undecided { token, begun } => {
                begun.extend(bytes);
                if let Some(report) = begun.strip_prefix(token.as_slice()) {
                    self.report = Report::OfStage(report.to_vec());
                } else if !token.starts_with(begun) {
                    let begun = std::mem::take(begun);
                    self.report = Report::None;
                    return self.forward(wire::STDERR, &begun);
                }
                Ok(())
            }
        }
    }

    /// Queues output for the service, up to the limit.
    fn forward(&mut self, kind: u8, bytes: &[u8]) -> io::Result<()> {
        let allowed = usize::try_from(self.allowance).unwrap_or(usize::MAX).min(bytes.len());
        self.overflowed |= allowed < bytes.len();
        self.allowance -= allowed as u64;
        for piece in bytes.get(..allowed).unwrap_or_default().chunks(PIECE_BYTES) {
            self.pending.extend(wire::header(kind, piece.len())?);
            self.pending.extend(piece);
        }
        Ok(())
    }
}

/// Reads the available bytes, up to a number. Returns it, and whether there may be more later.
fn read_some(from: Option<&mut impl Read>, at_most: usize) -> (Vec<u8>, bool) {
    let Some(from) = from else { return (Vec::new(), false) };
    let mut bytes = Vec::new();
    let mut piece = [0; READ_BYTES];
    while bytes.len() < at_most {
        match from.read(&mut piece) {
            Ok(0) => return (bytes, false),
            Ok(read) => bytes.extend(piece.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (bytes, error.kind() == ErrorKind::WouldBlock),
        }
    }
    (bytes, true)
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
