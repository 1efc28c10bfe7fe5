//! `run`: runs an agent and streams its output to the terminal. On a terminal, it asks for the
//! approvals that the run waits for, and continues with the answers.

mod approvals;
mod local;
mod outcome;
mod remote;
mod turn;

use std::io;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};

use self::approvals::{ask, can_ask};
use self::local::Local;
use self::outcome::{Ended, Shown, exit_code, print_outcome};
use self::remote::Remote;
pub(super) use self::turn::RunArgs;
use self::turn::{Runner, Turn};
use super::output::{EndedBySignal, is_broken_pipe, print_note};
use super::source::Choice;
use crate::app::Extensions;
use crate::lifecycle::StopSignals;

/// Runs an agent once, and again with each answer to its open calls.
pub(super) async fn run(args: RunArgs, extensions: Extensions) -> anyhow::Result<ExitCode> {
    let text = text_of(&args)?;
    match args.read.source.clone().choose()? {
        Choice::Store(store, tenant) => {
            let local = Local::open(store.load()?, tenant, extensions).await?;
            run_with(local, &args, text).await
        }
        Choice::Service(service) => {
            print_note(format_args!("service {}", service.address()))?;
            run_with(Remote::new(&service), &args, text).await
        }
    }
}

async fn run_with(mut runner: impl Runner, args: &RunArgs, text: String) -> anyhow::Result<ExitCode> {
    let mut signals = StopSignals::listen_on_terminal()?;
    let followed = converse(&mut runner, args, text, &mut signals).await;
    let interrupted = runner.close(followed.as_ref().err(), &mut signals).await;
    let shown = followed.as_ref().ok().or(interrupted.as_ref());
    let printed = shown.map_or(Ok(()), |ended| {
        print_outcome(ended, args.thread.as_ref(), args.read.json)
    });
    let done = followed.and_then(|ended| printed.and_then(|()| exit_code(&ended.fields)));
    done.map_err(|error| {
        if is_broken_pipe(&error) {
            EndedBySignal::BrokenPipe.into()
        } else {
            error
        }
    })
}

/// Returns the last run. A signal ends the conversation.
async fn converse(
    runner: &mut impl Runner,
    args: &RunArgs,
    text: String,
    signals: &mut StopSignals,
) -> anyhow::Result<Ended> {
    let mut turn = Turn::first(args, text);
    loop {
        let mut shown = Shown::new(args.read.json);
        let ended = tokio::select! {
            ended = runner.follow(&turn, &mut shown) => ended?,
            signal = signals.next() => return Err(EndedBySignal::Received(signal).into()),
        };
        shown.end(&ended.fields)?;
        if args.read.json || !can_ask(&ended.fields) {
            return Ok(ended);
        }
        let answers = tokio::select! {
            answers = ask(&ended.fields) => answers?,
            signal = signals.next() => return Err(EndedBySignal::Received(signal).into()),
        };
        let Some(answers) = answers else { return Ok(ended) };
        turn = Turn::answering(args, &ended.fields, answers);
    }
}

/// Returns the input, without the line end that a shell adds.
fn text_of(args: &RunArgs) -> anyhow::Result<String> {
    if args.text != "-" {
        ensure!(!args.text.is_empty(), "the text is empty");
        return Ok(args.text.clone());
    }
    let read = io::read_to_string(io::stdin()).context("can't read standard input")?;
    let text = read.trim_end_matches(['\r', '\n']);
    ensure!(!text.is_empty(), "standard input is empty");
    Ok(text.to_owned())
}
