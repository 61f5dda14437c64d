"""Known classes and unknown clusters told apart in a projection that is learnt round by round."""
