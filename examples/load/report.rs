//! The table of what was measured: each figure with its repeats, its aim, what a run cost in
//! processor time, and what the machine could do at that time.

#![expect(clippy::print_stdout, reason = "the report is what this program is for")]

use std::time::Duration;

use clap::ValueEnum;
use serde_json::json;

use crate::aims::Aim;
use crate::cpu::CpuPerRun;
use crate::database::Engine;
use crate::limits::Limits;
use crate::sample::{count, median, range};

/// How the report is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Lines for people.
    Text,
    /// A table for a document.
    Markdown,
    /// One JSON object per figure and line, for programs.
    Json,
}

/// Collects the figures of one engine.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    engine: &'a Engine,
    /// The machine and the engine.
    setting: Vec<String>,
    figures: Vec<Figure>,
    /// The figures before this one have their limits.
    closed: usize,
}

/// A figure, with one value for each time that it was measured.
#[derive(Debug)]
pub(crate) struct Figure {
    name: String,
    unit: &'static str,
    values: Vec<f64>,
    note: String,
    cpu: Vec<CpuPerRun>,
    beside: String,
}

impl<'a> Report<'a> {
    /// Begins a report. The setting has a line about the machine, and one about the engine.
    pub(crate) fn new(engine: &'a Engine, setting: Vec<String>) -> Self {
        Self {
            engine,
            setting,
            figures: Vec::new(),
            closed: 0,
        }
    }

    /// Adds a value to the figure with this name. The first value creates the figure.
    pub(crate) fn add(&mut self, name: impl Into<String>, value: f64, unit: &'static str) -> &mut Figure {
        let name = name.into();
        progress(&format!("{name}: {} {unit}", number(value)));
        let known = self.figures.iter().position(|figure| figure.name == name);
        let index = known.unwrap_or_else(|| {
            self.figures.push(Figure::new(name, unit));
            self.figures.len() - 1
        });
        let figure = &mut self.figures[index];
        figure.values.push(value);
        figure
    }

    /// Notes at all figures since the last call what the machine could do meanwhile.
    pub(crate) fn measured_beside(&mut self, limits: &[Limits]) {
        let of = |limit: fn(&Limits) -> f64| {
            let (least, most) = range(limits.iter().map(limit));
            format!("{} to {}", number(least), number(most))
        };
        let beside = format!("{}; {}", of(|limits| limits.commits), of(|limits| limits.completions));
        for figure in &mut self.figures[self.closed..] {
            figure.beside.clone_from(&beside);
        }
        self.closed = self.figures.len();
    }

    /// Prints the table.
    pub(crate) fn print(&self, format: Format) {
        match format {
            Format::Text => self.print_text(),
            Format::Markdown => self.print_markdown(),
            Format::Json => self.print_json(),
        }
    }

    fn print_text(&self) {
        println!(
            "{}",
            self.setting.join(
                "
"
            )
        );
        let width = self.figures.iter().map(|figure| figure.name.len()).max();
        let width = width.unwrap_or_default();
        for figure in &self.figures {
            let cells = ["", "aim: ", "met: ", "CPU: ", "limits: "]
                .into_iter()
                .zip(self.cells(figure));
            let cells = cells.filter(|(_, cell)| !cell.is_empty());
            let cells: Vec<String> = cells.map(|(name, cell)| format!("{name}{cell}")).collect();
            println!("{:width$}   {}", figure.name, cells.join("   "));
        }
    }

    fn print_markdown(&self) {
        println!(
            "{}
",
            self.setting.join(
                "
"
            )
        );
        println!(
            "| figure | median (minimum to maximum) | aim | met | CPU | limits |
|---|---|---|---|---|---|"
        );
        for figure in &self.figures {
            println!("| {} | {} |", figure.name, self.cells(figure).join(" | "));
        }
    }

    fn print_json(&self) {
        for figure in &self.figures {
            let line = json!({
                "engine": self.engine.name(),
                "figure": figure.name,
                "unit": figure.unit,
                "values": figure.values,
                "cpu_ms": figure.cpu.iter().map(|cpu| cpu.in_order().map(milliseconds)).collect::<Vec<_>>(),
                "aim": Aim::of(self.engine, &figure.name).map(|aim| aim.to_string()),
                "limits": figure.beside,
            });
            println!("{line}");
        }
    }

    /// Returns the cells after the name: what was measured, the aim, whether it is met, the
    /// processor time of a run, and the limits.
    fn cells(&self, figure: &Figure) -> [String; 5] {
        let aim = Aim::of(self.engine, &figure.name);
        let met = aim.map(|aim| if aim.is_met(figure.median()) { "yes" } else { "no" });
        [
            figure.measured(),
            aim.map(|aim| aim.to_string()).unwrap_or_default(),
            met.unwrap_or_default().to_owned(),
            figure.cpu(),
            figure.beside.clone(),
        ]
    }
}

impl Figure {
    fn new(name: String, unit: &'static str) -> Self {
        Self {
            name,
            unit,
            values: Vec::new(),
            note: String::new(),
            cpu: Vec::new(),
            beside: String::new(),
        }
    }

    /// Adds what a run cost when the value was measured.
    pub(crate) fn cpu_per_run(&mut self, cpu: CpuPerRun) -> &mut Self {
        self.cpu.push(cpu);
        self
    }

    /// Adds words about the newest value.
    pub(crate) fn note(&mut self, note: impl Into<String>) -> &mut Self {
        self.note = note.into();
        self
    }

    fn measured(&self) -> String {
        let middle = format!("{} {}", number(self.median()), self.unit);
        let (least, most) = range(self.values.iter().copied());
        let repeats = match self.values.len() {
            1 => String::new(),
            _ => format!(" ({} to {})", number(least), number(most)),
        };
        let note = match self.note.as_str() {
            "" => String::new(),
            note => format!("; {note}"),
        };
        format!("{}{repeats}{note}", middle.trim_end())
    }

    fn median(&self) -> f64 {
        median(self.values.clone())
    }

    fn cpu(&self) -> String {
        if self.cpu.is_empty() {
            return String::new();
        }
        let processes = (0..self.cpu[0].in_order().len()).map(|process| {
            let times = self.cpu.iter().map(|cpu| milliseconds(cpu.in_order()[process]));
            format!("{:.3}", median(times.collect()))
        });
        processes.collect::<Vec<_>>().join(" / ")
    }
}

/// Prints the progress to standard error.
#[expect(
    clippy::print_stderr,
    reason = "a run takes minutes; standard output is for the table"
)]
pub(crate) fn progress(text: &str) {
    eprintln!("load: {text}");
}

/// Returns a time in milliseconds.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Returns bytes in kilobytes.
pub(crate) fn kilobytes(bytes: u64) -> f64 {
    count(usize::try_from(bytes).unwrap_or(usize::MAX)) / 1024.0
}

/// Returns bytes in megabytes.
pub(crate) fn megabytes(bytes: u64) -> f64 {
    kilobytes(bytes) / 1024.0
}

/// Writes how many clients there are.
pub(crate) fn clients_text(clients: usize) -> String {
    match clients {
        1 => "1 client".to_owned(),
        _ => format!("{clients} clients"),
    }
}

/// Writes a number with three digits, or with all before the point.
pub(crate) fn number(value: f64) -> String {
    match value {
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ if value >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
