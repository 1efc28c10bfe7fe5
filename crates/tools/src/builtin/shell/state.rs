//! The state that a shell leaves for the next one: working directory and exported variables.
//!
//! Each command runs in a new shell. At its end the shell writes both into a file of the scratch
//! directory. A command can write anything there, but only itself reads it again.
//!
//! The session has the paths of a command with a mount namespace. On a host without them, variables
//! are translated when a command begins and ends, so they are also valid in another directory: for
//! a subagent, after a restart and on another machine.

use std::collections::BTreeMap;
use std::path::Path;

use sandbox::{CommandPaths, SCRATCH, WORKSPACE};
use values::session::ShellState;
use workspace::FilePath;

/// The file in the scratch directory.
pub(super) const STATE_FILE: &str = "shell-state";
/// The longest file that is read. A longer one changes nothing.
pub(super) const MAX_STATE_BYTES: u64 = 64 << 10;

/// Runs the command `$1`. At its end, the shell writes its state into the file `$2`: the
/// working directory, then the exported variables, each with a NUL after it.
pub(super) const SCRIPT: &str = r#"
agent_state_file=$2
agent_save_state() {
    agent_exit_code=$?
    { printf '%s\0' "$(pwd -P)"; /usr/bin/env -0; } >"$agent_state_file" 2>/dev/null
    exit "$agent_exit_code"
}
trap agent_save_state EXIT
eval "$1"
"#;

/// The variable with the span of the call, in the form of the header `traceparent`.
pub(super) const TRACE: &str = "TRACEPARENT";

/// Variables that each shell sets anew.
const OWN: [&str; 8] = ["_", "HOME", "OLDPWD", "PWD", "SHELL", "SHLVL", "TMPDIR", TRACE];

/// Reads the state that a shell has left. `base` are the variables that every shell begins with.
/// Returns `None` if it is incomplete or too long.
pub(super) fn read_state(bytes: &[u8], paths: &CommandPaths, base: &BTreeMap<String, String>) -> Option<ShellState> {
    if bytes.len() as u64 >= MAX_STATE_BYTES || bytes.last() != Some(&0) {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let mut fields = text.split_terminator('\0');
    let cwd = fields.next()?;
    let variables = fields.filter_map(|field| field.split_once('='));
    let is_retained =
        |(name, value): &(&str, &str)| !OWN.contains(name) && base.get(*name).is_none_or(|known| known != value);
    let variables = variables.filter(is_retained);
    Some(ShellState {
        cwd: relative(Path::new(cwd), &paths.directory),
        variables: variables
            .map(|(name, value)| (name.to_owned(), translated(paths, value, false)))
            .collect(),
        ..ShellState::default()
    })
}

/// Returns the path of a directory relative to the root of the workspace; empty for the root itself
/// and for a directory outside.
fn relative(cwd: &Path, root: &Path) -> String {
    let inside = cwd.strip_prefix(root).ok().and_then(Path::to_str);
    inside.unwrap_or_default().to_owned()
}

/// Returns stored variables as a command has them.
pub(super) fn variables_in(paths: &CommandPaths, mut stored: BTreeMap<String, String>) -> BTreeMap<String, String> {
    for value in stored.values_mut() {
        *value = translated(paths, value, true);
    }
    stored
}

/// Returns a text with the paths of these directories in place of the paths in a session, or the
/// other way round.
fn translated(paths: &CommandPaths, text: &str, is_stored: bool) -> String {
    let mut text = text.to_owned();
    for (own, stored) in [(&paths.directory, WORKSPACE), (&paths.scratch, SCRATCH)] {
        let Some(own) = own.to_str().filter(|own| *own != stored) else {
            continue;
        };
        let (from, to) = if is_stored { (stored, own) } else { (own, stored) };
        text = replaced(&text, from, to);
    }
    text
}

/// Replaces an absolute path where it is a whole path, or the beginning of one.
fn replaced(text: &str, from: &str, to: &str) -> String {
    let mut new = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        let (before, after) = (&rest[..at], &rest[at + from.len()..]);
        new.push_str(before);
        let is_whole = begins_path(&new) && !after.starts_with(is_of_name);
        new.push_str(if is_whole { to } else { from });
        rest = after;
    }
    new.push_str(rest);
    new
}

/// Returns whether an absolute path may begin after a text: after no other names, an option as in
/// `-I/include`, or `file://`.
fn begins_path(before: &str) -> bool {
    let is_in_path = |c: char| is_of_name(c) || c == '/';
    let start = before.trim_end_matches(is_in_path).len();
    let joined = &before[start..];
    matches!(joined, "" | "//") || (joined.starts_with('-') && !joined.contains('/'))
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// Returns the part of a stored state that a shell begins with.
pub fn restorable_shell(state: Option<&ShellState>) -> Option<ShellState> {
    let state = state?;
    Some(ShellState {
        cwd: stored_directory(Some(state)).map_or_else(String::new, |path| path.as_str().to_owned()),
        variables: stored_variables(Some(state)),
        ..ShellState::default()
    })
}

/// Returns the directory that a stored state names. `None` is the root.
pub(super) fn stored_directory(state: Option<&ShellState>) -> Option<FilePath> {
    FilePath::parse(&state?.cwd).ok()
}

/// Returns the variables of a stored state. A caller may have stored any texts there. So texts that
/// no process can have are left out, and all of them are left out if they are longer than a shell
/// can leave.
pub(super) fn stored_variables(state: Option<&ShellState>) -> BTreeMap<String, String> {
    let variables = state.into_iter().flat_map(|state| &state.variables);
    let is_possible =
        |(name, value): &(&String, &String)| !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0');
    let possible: Vec<_> = variables.filter(is_possible).collect();
    let bytes: usize = possible.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    if bytes as u64 >= MAX_STATE_BYTES {
        return BTreeMap::new();
    }
    let owned = possible.into_iter().map(|(name, value)| (name.clone(), value.clone()));
    owned.filter(|(name, _)| !OWN.contains(&name.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> CommandPaths {
        CommandPaths {
            directory: "/w/files".into(),
            scratch: "/w/scratch".into(),
        }
    }

    fn read(bytes: &[u8]) -> Option<ShellState> {
        let base = BTreeMap::from([("PATH".to_owned(), "/bin".to_owned())]);
        read_state(bytes, &paths(), &base)
    }

    #[test]
    fn what_differs_from_the_base_is_retained() {
        let state = read(b"/w/files/src\0PATH=/bin\0A=1=2\0HOME=/x\0TRACEPARENT=00\0EMPTY=\0MANY=a\nb\0").unwrap();
        assert_eq!(state.cwd, "src");
        let expected = [("A", "1=2"), ("EMPTY", ""), ("MANY", "a\nb")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(state.variables, expected.into());
        assert_eq!(read(b"/w/files\0PATH=/x\0").unwrap().variables["PATH"], "/x");
    }

    #[test]
    fn a_directory_outside_is_the_root() {
        for cwd in ["/w/files", "/", "/w/filesystem", "/w/scratch/home"] {
            assert_eq!(read(format!("{cwd}\0").as_bytes()).unwrap().cwd, "", "{cwd}");
        }
    }

    #[test]
    fn variables_have_the_paths_of_each_host() {
        let own = "/w/files/bin:/usr/bin:/w/files:/w/filesystem:/x/w/files:-I/w/files/a b,/w/scratch/home";
        let stored = "/workspace/bin:/usr/bin:/workspace:/w/filesystem:/x/w/files:-I/workspace/a b,/scratch/home";
        let state = read(format!("/w/files\0PATH={own}\0").as_bytes()).unwrap();
        assert_eq!(state.variables["PATH"], stored);
        assert_eq!(variables_in(&paths(), state.variables.clone())["PATH"], own);
        let elsewhere = CommandPaths {
            directory: WORKSPACE.into(),
            scratch: SCRATCH.into(),
        };
        assert_eq!(variables_in(&elsewhere, state.variables)["PATH"], stored);
        assert_eq!(
            replaced("x=/workspace a/workspace/workspace /workspaces", "/workspace", "/w"),
            "x=/w a/workspace/workspace /workspaces"
        );
    }

    #[test]
    fn stored_variables_that_no_process_can_have_are_left_out() {
        let state = |variables: &[(&str, &str)]| ShellState {
            variables: variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..ShellState::default()
        };
        let odd = state(&[
            ("", "1"),
            ("A=B", "1"),
            ("N\0", "1"),
            ("V", "\0"),
            ("HOME", "/"),
            ("GOOD", "a b"),
        ]);
        let expected = [("GOOD".to_owned(), "a b".to_owned())];
        assert_eq!(stored_variables(Some(&odd)), expected.into());
        let long = "x".repeat(1 << 16);
        assert_eq!(stored_variables(Some(&state(&[("LONG", &long)]))), BTreeMap::new());
        assert_eq!(stored_variables(None), BTreeMap::new());
    }

    #[test]
    fn what_is_cut_or_too_long_changes_nothing() {
        for bytes in [&b""[..], b"/w/files", b"/w/files\0A=1", b"/w/files\0A=\xff\0"] {
            assert_eq!(read(bytes), None);
        }
        let long = format!("/w/files\0A={}\0", "a".repeat(1 << 16));
        assert_eq!(read(long.as_bytes()), None);
    }
}
