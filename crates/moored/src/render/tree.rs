//! A process tree: each process below its parent. A process whose parent is not among them is a root.

use std::collections::HashSet;

/// One process in a tree.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) text: String,
}

/// The whole tree, a line each, in the order given among siblings.
pub(crate) fn tree(nodes: &[Node]) -> String {
    let known: HashSet<u32> = nodes.iter().map(|node| node.pid).collect();
    let roots: Vec<&Node> = nodes.iter().filter(|node| !known.contains(&node.parent)).collect();
    let mut text = String::new();
    // Pids that were reused during the snapshot may form a cycle: each process is shown once.
    let mut drawn = HashSet::new();
    draw(&roots, nodes, "  ", &mut drawn, &mut text);
    text
}

fn draw(siblings: &[&Node], all: &[Node], indent: &str, drawn: &mut HashSet<u32>, text: &mut String) {
    for (index, node) in siblings.iter().enumerate() {
        if !drawn.insert(node.pid) {
            continue;
        }
        let last = index + 1 == siblings.len();
        let (branch, below) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let line: String = node.text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        text.push_str(&format!("{indent}{branch}{line}\n"));
        let children: Vec<&Node> = all.iter().filter(|child| child.parent == node.pid).collect();
        draw(&children, all, &format!("{indent}{below}"), drawn, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(pid: u32, parent: u32) -> Node {
        Node { pid, parent, text: pid.to_string() }
    }

    #[test]
    fn each_stands_below_its_parent() {
        let text = tree(&[node(2, 1), node(3, 2), node(4, 2), node(5, 9)]);
        assert_eq!(text, "  ├─ 2\n  │  ├─ 3\n  │  └─ 4\n  └─ 5\n");
    }

    #[test]
    fn one_that_is_its_own_parent_does_not_go_on_for_ever() {
        assert_eq!(tree(&[node(1, 0), node(2, 2)]), "  └─ 1\n");
    }
}
