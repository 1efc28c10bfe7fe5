//! The guides in their groups, in the order of the navigation. A new file in the folder `docs`
//! comes into the table below: a test compares both.

/// A guide.
#[derive(Debug)]
pub(super) struct Guide {
    /// Its name in the folder, such as `agents.md`. It leads to the guide below `/docs/`, too. So
    /// links between guides work as they are written.
    pub(super) file: &'static str,
    pub(super) markdown: &'static str,
}

impl Guide {
    /// Returns its name without `.md`.
    pub(super) fn name(&self) -> &'static str {
        self.file.strip_suffix(".md").unwrap_or(self.file)
    }

    /// Returns its first heading.
    pub(super) fn title(&self) -> &'static str {
        let mut lines = self.markdown.lines();
        lines.find_map(|line| line.strip_prefix("# ")).unwrap_or(self.file)
    }
}

/// Guides with one purpose.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: &'static str,
    pub(super) guides: &'static [Guide],
}

macro_rules! groups {
    ($($group:literal: $($file:literal)+;)+) => {
        /// All guides.
        pub(super) const GROUPS: &[Group] = &[$(Group {
            name: $group,
            guides: &[$(Guide { file: $file, markdown: include_str!(concat!("../../../docs/", $file)) }),+],
        }),+];
    };
}

groups! {
    "Start": "agents.md" "sessions.md" "threads.md" "models.md" "console.md";
    "Tools": "tools.md" "http-tools.md" "mcp.md" "files.md" "environments.md" "sandbox.md" "sandbox-network.md";
    "Use": "approvals.md" "subagents.md" "hooks.md" "webhook-hook.md" "webhooks.md" "budgets.md" "compaction.md"
        "openai.md" "ai-sdk.md" "ag-ui.md" "langgraph.md"
        "mcp-server.md";
    "Operate": "install.md" "kubernetes.md" "configuration.md" "operations.md" "spending.md" "tokens.md" "audit.md" "metrics.md" "traces.md" "commands.md" "deployment.md" "scaling.md" "benchmarks.md";
    "Reference": "api.md" "events.md" "problems.md" "guarantees.md";
}

/// Returns all guides in the order of the navigation.
pub(super) fn all() -> impl Iterator<Item = &'static Guide> {
    GROUPS.iter().flat_map(|group| group.guides)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_table_has_each_guide_of_the_folder_once() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
        let entries = fs::read_dir(&folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let is_guide = |name: &String| Path::new(name).extension().is_some_and(|end| end == "md");
        let mut names: Vec<String> = names.filter(is_guide).collect();
        names.sort();
        let mut table: Vec<&str> = all().map(|guide| guide.file).collect();
        table.sort_unstable();
        assert_eq!(table, names, "the table in src/http/guides/table.rs");
        for guide in all() {
            // A program of another build could have other words.
            assert!(guide.markdown == fs::read_to_string(folder.join(guide.file)).unwrap());
            assert!(guide.markdown.starts_with(&format!("# {}\n", guide.title())));
        }
    }
}
