//! Which files of a package import each other, read from their `use` lines and paths.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use super::rust_files;

/// Which file imports an item of which other file of its package. An import of a re-exported name
/// is an import of the file that defines it. Tests inside a file don't count: they may import
/// anything.
pub(super) struct ImportGraph {
    root: PathBuf,
    /// The code of each file, by the path of its module: `run::queue::worker`.
    files: BTreeMap<Vec<String>, String>,
}

impl ImportGraph {
    pub(super) fn read(root: &Path) -> Self {
        let files = rust_files(root).into_iter().map(|file| {
            let below = file.strip_prefix(root).unwrap().with_extension("");
            let names = below.iter().map(|name| name.to_str().unwrap().to_owned());
            let module = names.filter(|name| name != "mod" && name != "lib").collect();
            let text = fs::read_to_string(&file).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let code = lines.collect::<Vec<_>>().join("\n");
            (module, code)
        });
        Self {
            root: root.to_owned(),
            files: files.collect(),
        }
    }

    /// Returns each circle of imports once, as paths; the last is the first again. A folder imports
    /// what its files import, so the files and folders beside each other have an order.
    pub(super) fn circles(&self) -> Vec<Vec<PathBuf>> {
        let mut imports: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
        for from in self.files.keys() {
            for to in self.imports(from) {
                let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
                let [from, to] = [from, &to].map(|module| module[..module.len().min(shared + 1)].to_vec());
                imports.entry(to.clone()).or_default();
                imports.entry(from).or_default().insert(to);
            }
        }
        let path = |module: &Vec<String>| self.root.join(module.iter().collect::<PathBuf>());
        let circles = circles_of(&imports);
        circles.iter().map(|circle| circle.iter().map(path).collect()).collect()
    }

    /// Returns the files that a file imports from. What it only re-exports, it does not use.
    fn imports(&self, from: &[String]) -> BTreeSet<Vec<String>> {
        let exports = exports_of(&self.files[from]);
        let paths = paths_of(&self.files[from]).into_iter();
        let paths = paths.filter(|path| !exports.contains(path));
        let absolute = paths.filter_map(|path| absolute(from, &path));
        let targets = absolute.filter_map(|path| self.target(&path, 0));
        targets.filter(|to| to[..] != *from).collect()
    }

    /// Finds the file that defines what a path leads to.
    fn target(&self, path: &[String], depth: usize) -> Option<Vec<String>> {
        let length = (1..=path.len())
            .rev()
            .find(|length| self.files.contains_key(&path[..*length]))?;
        let (module, rest) = path.split_at(length);
        if let Some(item) = rest.first().filter(|_| depth < 8) {
            let is_export = |export: &Vec<String>| {
                export.last() == Some(item) && export.first().is_some_and(|first| first == "self")
            };
            let exports = exports_of(&self.files[module]);
            if let Some(export) = exports.iter().find(|export| is_export(export)) {
                return self.target(&absolute(module, export)?, depth + 1);
            }
        }
        Some(module.to_vec())
    }
}

/// Returns each circle of imports once; the last of a circle is its first again.
fn circles_of<T: Ord + Clone>(imports: &BTreeMap<T, BTreeSet<T>>) -> Vec<Vec<T>> {
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for start in imports.keys() {
        if seen.contains(start) {
            continue;
        }
        // The shortest way back to the start, breadth first.
        let mut ways = VecDeque::from([vec![start]]);
        let mut visited = BTreeSet::new();
        while let Some(way) = ways.pop_front() {
            for to in &imports[way[way.len() - 1]] {
                let longer = [&way[..], &[to]].concat();
                if to == start {
                    circles.push(longer.into_iter().cloned().collect());
                    seen.extend(way.iter().copied());
                    ways.clear();
                    break;
                }
                if visited.insert(to) {
                    ways.push_back(longer);
                }
            }
        }
    }
    circles
}

/// Every path in the code that begins with `crate`, `self` or `super`, but no path of a visibility.
/// Groups in braces are spelled out.
fn paths_of(code: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for root in ["crate::", "self::", "super::"] {
        for (at, _) in code.match_indices(root) {
            let before = code[..at].chars().next_back();
            let is_part = before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$');
            if !is_part && !code[..at].ends_with("pub(in ") {
                spell_out(&code[at..], &[], &mut paths);
            }
        }
    }
    paths
}

/// The paths of re-exports, such as `self::worker::Worker` of `pub(super) use
/// self::worker::Worker;`.
fn exports_of(code: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("use self::") {
        let line = code[..at].rsplit('\n').next().unwrap_or_default();
        if line.trim_start().starts_with("pub") {
            spell_out(&code[at + "use ".len()..], &[], &mut paths);
        }
    }
    paths
}

/// Adds the paths at the beginning of the text to the list, and returns where they end.
fn spell_out(text: &str, above: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let name = identifier(text);
    let path = [above, &[name.to_owned()]].concat();
    let mut at = name.len();
    let Some(below) = text[at..].strip_prefix("::") else {
        paths.push(path);
        return at;
    };
    at += 2;
    if !below.starts_with('{') {
        return at + spell_out(below, &path, paths);
    }
    at += 1;
    loop {
        let rest = text[at..].trim_start_matches([' ', '\n', ',']);
        at = text.len() - rest.len();
        if rest.starts_with('}') || rest.is_empty() {
            return at + 1;
        }
        at += spell_out(rest, &path, paths).max(1);
        let rest = &text[at..];
        // A name may have another one here.
        at += rest.find([',', '}', '{']).unwrap_or(rest.len());
    }
}

/// Returns a path from the root of the crate.
fn absolute(module: &[String], path: &[String]) -> Option<Vec<String>> {
    let mut base = module.to_vec();
    let mut rest = path;
    while let Some((first, below)) = rest.split_first() {
        match first.as_str() {
            "crate" => base.clear(),
            "self" => (),
            "super" => drop(base.pop()?),
            _ => break,
        }
        rest = below;
    }
    Some([&base, rest].concat())
}

pub(super) fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    &text[..end.unwrap_or(text.len())]
}
