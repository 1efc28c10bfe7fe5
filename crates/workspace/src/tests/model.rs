//! Random changes of a tree, compared with a map from paths to what is there.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The entries of the model, by path: the line that `shown` shows for each.
type Model = BTreeMap<String, String>;

#[derive(Debug, Clone)]
enum Step {
    Write(String, u8, bool),
    Directory(String),
    Link(String, u8),
    Remove(String),
    Save,
    Reopen,
}

fn any_path() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "c", "a-", "ab"]);
    prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any_path(), 0..4_u8, any::<bool>()).prop_map(|(path, byte, mode)| Step::Write(path, byte, mode)),
        2 => any_path().prop_map(Step::Directory),
        // Nothing is written through this name.
        1 => (any_path(), 0..3_u8).prop_map(|(path, target)| Step::Link(format!("{path}/link"), target)),
        3 => any_path().prop_map(Step::Remove),
        1 => Just(Step::Save),
        1 => Just(Step::Reopen),
    ]
}

/// Applies a step to the model. Returns whether that is possible.
fn apply(model: &mut Model, step: &Step) -> bool {
    let is_directory = |model: &Model, path: &str| model.get(path).is_some_and(|shown| shown.ends_with('/'));
    let (path, line) = match step {
        Step::Write(path, byte, mode) => (path, format!("{path}{}: {byte}", if *mode { "*" } else { "" })),
        Step::Directory(path) => (path, format!("{path}/")),
        Step::Link(path, target) => (path, format!("{path} -> t{target}")),
        Step::Remove(path) => {
            let below = format!("{path}/");
            let before = model.len();
            model.retain(|other, _| other != path && !other.starts_with(&below));
            return model.len() < before;
        }
        Step::Save | Step::Reopen => return true,
    };
    let parents: Vec<_> = path.match_indices('/').map(|(end, _)| &path[..end]).collect();
    let is_blocked = |parent: &&str| model.contains_key(*parent) && !is_directory(model, parent);
    if parents.iter().any(is_blocked) {
        return false;
    }
    let is_new_directory = matches!(step, Step::Directory(_));
    if model.contains_key(path) && is_directory(model, path) != is_new_directory {
        return false;
    }
    for parent in parents {
        model.insert(parent.to_owned(), format!("{parent}/"));
    }
    model.insert(path.clone(), line);
    true
}

async fn apply_to_tree(contents: &Arc<InMemoryContents>, tree: &Tree, step: &Step) -> Result<Tree, TreeError> {
    match step {
        Step::Write(at, byte, mode) => tree.with_file(&path(at), Bytes::from(byte.to_string()), *mode).await,
        Step::Directory(at) => tree.with_directory(&path(at)).await,
        Step::Link(at, target) => tree.with_symlink(&path(at), &format!("t{target}")).await,
        Step::Remove(at) => tree.without(&path(at)).await,
        Step::Save => tree.save().await,
        Step::Reopen => Ok(reopened(contents, &tree.save().await?)),
    }
}

/// Returns the lines of the model, depth first by name.
fn lines(model: &Model) -> Vec<String> {
    let mut paths: Vec<_> = model.keys().collect();
    paths.sort_by_key(|path| path.split('/').collect::<Vec<_>>());
    paths.into_iter().map(|path| model[path].clone()).collect()
}

async fn check(steps: Vec<Step>) {
    let (contents, mut tree) = empty();
    let mut model = Model::new();
    for step in steps {
        let is_possible = apply(&mut model, &step);
        match apply_to_tree(&contents, &tree, &step).await {
            Ok(changed) => {
                assert!(is_possible, "{step:?}");
                tree = changed;
            }
            Err(error) => assert!(!is_possible, "{step:?}: {error}"),
        }
        assert_eq!(shown(&tree).await, lines(&model), "{step:?}");
    }
    let again = lines(&model);
    let again = change(&empty().1, &again).await;
    assert_eq!(again.totals().await.unwrap(), tree.totals().await.unwrap());
    let hash = tree.save().await.unwrap().hash();
    assert_eq!(
        again.save().await.unwrap().hash(),
        hash,
        "the order of changes does not matter"
    );
}

/// Writes and removes files of one directory so that it is split and joined again.
async fn check_large_directory(numbers: Vec<u16>) {
    let (contents, mut tree) = empty();
    let mut model = BTreeMap::new();
    for (step, number) in numbers.into_iter().enumerate() {
        let name = format!("f{}", number % 700);
        // First the directory grows, and then it shrinks.
        let is_write = number / 700 % 4 != u16::from(step >= 1_200);
        if is_write && step < 1_200 || !is_write && step >= 1_200 {
            tree = change(&tree, &[&format!("d/{name}: {number}")]).await;
            model.insert(name, number.to_string());
        } else if model.remove(&name).is_some() {
            tree = change(&tree, &[&format!("!d/{name}")]).await;
        }
        if step % 150 == 0 {
            tree = tree.save().await.unwrap();
        }
        if step % 300 == 0 {
            tree = reopened(&contents, &tree);
        }
    }
    let expected: Vec<_> = model.iter().map(|(name, text)| format!("d/{name}: {text}")).collect();
    assert_eq!(shown(&tree).await[1..], expected);
    let again = change(&empty().1, &expected).await;
    let hash = tree.save().await.unwrap().hash();
    assert_eq!(
        again.save().await.unwrap().hash(),
        hash,
        "the order of changes does not matter"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_is_what_a_map_says(steps in prop::collection::vec(any_step(), 0..40)) {
        block_on(check(steps));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, max_shrink_iters: 20, ..ProptestConfig::default() })]

    #[test]
    fn a_directory_is_split_in_one_way_only(numbers in prop::collection::vec(any::<u16>(), 1_000..2_000)) {
        block_on(check_large_directory(numbers));
    }
}
