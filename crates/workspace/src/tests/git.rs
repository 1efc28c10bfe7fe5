//! Merges compared with those of git.
//!
//! Git 2.47 can't merge without looking for renames. So no line is in two files.
//!
//! Git merges more texts than we do: a change here covers all lines about which there is doubt. So
//! we report some conflicts that git does not: in 0.2 % of the merges of a source file, and in 4 %
//! of those of short texts of 5 to 20 different lines. In a few merges of such short texts, the
//! algorithms of git disagree with each other. There we may merge what one of them does not, and
//! merged one of 7,200 in another way.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::certain_edits::LineBudget;
use crate::merge_text::merge_texts;
use crate::{Merged, merge};

use super::*;

/// Lines, each the number of a line.
type Lines = Vec<usize>;

/// A text whose lines are mostly unique, as in real files.
const SOURCE: &str = include_str!("../resolve.rs");

/// Replaces some lines by others, each one of the kinds.
fn edited(lines: &Lines, kinds: &[usize], random: &mut Random) -> Lines {
    let mut lines = lines.clone();
    for _ in 0..=random.below(3) {
        let start = random.below(lines.len() + 1);
        let end = lines.len().min(start + random.below(3));
        let new: Lines = (0..random.below(3)).map(|_| kinds[random.below(kinds.len())]).collect();
        lines.splice(start..end, new);
    }
    lines
}

/// How two results compare.
#[derive(Debug, Default)]
struct Counts {
    equal: usize,
    both_conflict: usize,
    only_ours: usize,
    only_git: usize,
    different: usize,
}

impl Counts {
    fn add<T: PartialEq + std::fmt::Debug>(&mut self, ours: Option<&T>, git: Option<&T>, what: impl std::fmt::Debug) {
        match (ours, git) {
            (Some(ours), Some(git)) if ours == git => self.equal += 1,
            (Some(ours), Some(git)) => {
                println!("another merge: {what:?}, {ours:?}, {git:?}");
                self.different += 1;
            }
            (None, None) => self.both_conflict += 1,
            (None, Some(_)) => self.only_ours += 1,
            (Some(_), None) => {
                println!("only git conflicts: {what:?}");
                self.only_git += 1;
            }
        }
    }
}

fn merge_file(directory: &Path, algorithm: &str, texts: [&str; 3]) -> Option<String> {
    for (name, text) in ["base", "ours", "theirs"].iter().zip(texts) {
        std::fs::write(directory.join(name), text).unwrap();
    }
    let algorithm = format!("--diff-algorithm={algorithm}");
    let mut git = Command::new("git");
    git.args(["merge-file", "-p", "-q", &algorithm, "ours", "base", "theirs"]);
    let output = git.current_dir(directory).output().unwrap();
    output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).unwrap())
}

/// Merges random changes of texts. Counts how the results compare with those of git.
fn compare_texts(count: usize, mut base: impl FnMut(&mut Random) -> (Lines, Vec<usize>)) -> Counts {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut counts = Counts::default();
    for _ in 0..cases(count) {
        let (base, kinds) = base(&mut random);
        let (ours, theirs) = (edited(&base, &kinds, &mut random), edited(&base, &kinds, &mut random));
        let texts = [&base, &ours, &theirs].map(text_of);
        let texts = texts.each_ref().map(String::as_str);
        let [base, ours, theirs] = texts.map(str::as_bytes);
        let merged = merge_texts(base, ours, theirs, &mut LineBudget::of_a_merge());
        let merged = merged.map(|merged| String::from_utf8(merged).unwrap());
        for algorithm in ["myers", "histogram"] {
            let git = merge_file(directory.path(), algorithm, texts);
            counts.add(merged.as_ref(), git.as_ref(), texts);
        }
    }
    println!("{counts:?}");
    assert_eq!(counts.different, 0, "{counts:?}");
    counts
}

#[test]
fn short_texts_of_few_different_lines_are_merged_as_git_does() {
    let mut case = 0;
    let counts = compare_texts(45, |random| {
        case += 1;
        let kinds: Vec<_> = (0..[5, 10, 20][case % 3]).collect();
        let base = (0..random.below(20)).map(|_| random.below(kinds.len())).collect();
        (base, kinds)
    });
    let all = 2 * cases(45);
    assert!(counts.only_ours * 6 <= all && counts.only_git * 50 <= all, "{counts:?}");
    assert!(counts.equal * 3 >= all, "{counts:?}");
}

#[test]
fn changes_of_a_source_file_are_merged_as_git_does() {
    let mut numbers = std::collections::HashMap::new();
    let lines: Lines = SOURCE
        .lines()
        .map(|line| {
            let next = numbers.len();
            *numbers.entry(line).or_insert(next)
        })
        .collect();
    // Changes add lines that are in the file: empty ones, braces and others.
    let counts = compare_texts(30, |random| {
        let start = random.below(lines.len() - 60);
        (lines[start..start + 60].to_vec(), lines.clone())
    });
    let all = 2 * cases(30);
    assert!(
        counts.only_ours * 20 <= all && counts.only_git == 0 && counts.equal * 2 >= all,
        "{counts:?}"
    );
}

/// The files of a small tree, by path.
type Files = std::collections::BTreeMap<String, File>;

#[derive(Debug, Clone, PartialEq)]
enum File {
    Text(Lines, bool),
    Link(usize),
}

/// Changes some files. A file may become a directory, and the other way round.
fn edited_files(files: &Files, random: &mut Random) -> Files {
    const KINDS: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
    const PATHS: [&str; 8] = ["a", "b", "d", "d/a", "d/b", "d/e/a", "d/e/b", "f/a"];
    let mut files = files.clone();
    for _ in 0..random.below(4) {
        let at = PATHS[random.below(PATHS.len())];
        let old = files.get(at).cloned();
        let below = format!("{at}/");
        let mut put = |file: File| {
            files.retain(|path, _| !path.starts_with(&below) && !at.starts_with(&format!("{path}/")));
            files.insert(at.to_owned(), file);
        };
        match (random.below(8), old) {
            (0..3, Some(File::Text(lines, mode))) => put(File::Text(edited(&lines, &KINDS, random), mode)),
            (3, Some(File::Text(lines, mode))) => put(File::Text(lines, !mode)),
            (4, _) => put(File::Link(random.below(3))),
            (5 | 6, _) => files.retain(|path, _| path != at && !path.starts_with(&below)),
            _ => {
                let lines = (0..random.below(12)).map(|_| random.below(KINDS.len())).collect();
                put(File::Text(lines, random.below(4) == 0));
            }
        }
    }
    files
}

fn file_text(path: &str, lines: &Lines) -> String {
    text_of(lines.iter().map(|line| format!("{path} {line}")))
}

fn link_target(path: &str, target: usize) -> String {
    format!("{}{target}", path.replace('/', "-"))
}

async fn tree_of(files: &Files) -> Tree {
    let lines = files.iter().map(|(path, file)| match file {
        File::Text(lines, true) => format!("{path}*: {}", file_text(path, lines)),
        File::Text(lines, false) => format!("{path}: {}", file_text(path, lines)),
        File::Link(target) => format!("{path} -> {}", link_target(path, *target)),
    });
    let lines: Vec<_> = lines.collect();
    change(&empty().1, &lines).await
}

struct Git<'a>(&'a Path);

impl Git<'_> {
    fn run(&self, arguments: &[&str], input: &str) -> (bool, String) {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(self.0);
        let mut git = git
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut git.stdin.take().unwrap(), input.as_bytes()).unwrap();
        let output = git.wait_with_output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    }

    /// Writes commits by one call: the base, and two that change it.
    fn commit(&self, [base, ours, theirs]: [&Files; 3]) {
        let mut stream = Vec::new();
        for (branch, files, parent) in [("base", base, ""), ("ours", ours, "base"), ("theirs", theirs, "base")] {
            stream.push(format!("commit refs/heads/{branch}\ncommitter a <a> 1 +0000\ndata 0\n"));
            if !parent.is_empty() {
                stream.push(format!("from refs/heads/{parent}\n"));
            }
            stream.push("deleteall\n".to_owned());
            for (path, file) in files {
                let (mode, data) = match file {
                    File::Text(lines, true) => ("100755", file_text(path, lines)),
                    File::Text(lines, false) => ("100644", file_text(path, lines)),
                    File::Link(target) => ("120000", link_target(path, *target)),
                };
                stream.push(format!("M {mode} inline {path}\ndata {}\n{data}\n", data.len()));
            }
        }
        let (success, _) = self.run(&["fast-import", "--force", "--quiet"], &stream.concat());
        assert!(success);
    }

    /// Returns the merged files as `shown` shows them, without directories.
    fn merge(&self) -> Option<Vec<String>> {
        let (success, tree) = self.run(
            &["merge-tree", "--write-tree", "-Xfind-renames=100%", "ours", "theirs"],
            "",
        );
        let tree = tree.lines().next().unwrap_or_default().to_owned();
        success.then(|| {
            let (_, list) = self.run(
                &["ls-tree", "-r", "--format=%(objectmode) %(objectname) %(path)", &tree],
                "",
            );
            let entries: Vec<Vec<&str>> = list.lines().map(|line| line.splitn(3, ' ').collect()).collect();
            let names = text_of(entries.iter().map(|entry| entry[1]));
            let (_, blobs) = self.run(&["cat-file", "--batch=%(objectsize)"], &names);
            let mut rest = blobs.as_str();
            let mut files: Vec<_> = entries
                .iter()
                .map(|entry| {
                    let (size, after) = rest.split_once('\n').unwrap();
                    let (data, after) = after.split_at(size.parse().unwrap());
                    rest = &after[1..];
                    match entry[0] {
                        "120000" => format!("{} -> {data}", entry[2]),
                        "100755" => format!("{}*: {data}", entry[2]),
                        _ => format!("{}: {data}", entry[2]),
                    }
                })
                .collect();
            files.sort();
            files
        })
    }
}

#[test]
fn trees_are_merged_as_git_does() {
    let directory = tempfile::tempdir().unwrap();
    let git = Git(directory.path());
    assert!(git.run(&["init", "--quiet", "--bare", "."], "").0);
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut counts = Counts::default();
    for _ in 0..cases(40) {
        let base = (0..4).fold(Files::new(), |files, _| edited_files(&files, &mut random));
        let (ours, theirs) = (edited_files(&base, &mut random), edited_files(&base, &mut random));
        git.commit([&base, &ours, &theirs]);
        let merged = block_on(async {
            let merged = merge(&tree_of(&base).await, &tree_of(&ours).await, &tree_of(&theirs).await).await;
            let Merged::Clean(tree) = merged.unwrap() else {
                return None;
            };
            let mut lines = shown(&tree).await;
            lines.retain(|line| !line.ends_with('/'));
            lines.sort();
            Some(lines)
        });
        counts.add(merged.as_ref(), git.merge().as_ref(), (&base, &ours, &theirs));
    }
    println!("{counts:?}");
    assert_eq!(counts.different, 0, "{counts:?}");
    assert!(counts.only_git == 0 && counts.only_ours * 10 <= cases(40), "{counts:?}");
}

/// Returns the number of cases; with `GIT_CASES`, that many times more.
fn cases(count: usize) -> usize {
    option_env!("GIT_CASES")
        .and_then(|times| times.parse().ok())
        .unwrap_or(1)
        * count
}
