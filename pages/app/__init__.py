"""What two or more pages share: state, links, controls, run lists."""
