# A server with many sleeping children, and some that come and go. Usage: server.pl CHILDREN CHURN READY STUBBORN.
# A stubborn one, and all that is its own, does not end at SIGTERM.
use strict;
use warnings;
use POSIX ();

my ($children, $churn, $ready, $stubborn) = @ARGV;
$SIG{TERM} = 'IGNORE' if $stubborn;
my $started = 0;
for (1 .. $children) {
    my $child = fork;
    last if !defined $child;
    if (!$child) { sleep 600; POSIX::_exit(0) }
    $started++;
}
sub tell_ready {
    open my $file, '>', "$ready.new" or die "$ready: $!";
    print $file $started;
    close $file;
    rename "$ready.new", $ready;
}

my ($alive, $gone) = (0, 0);
while (1) {
    while ($alive < $churn) {
        my $child = fork;
        last if !defined $child;
        if (!$child) { select undef, undef, undef, 0.003 + rand 0.008; POSIX::_exit(0) }
        $alive++;
    }
    while (waitpid(-1, POSIX::WNOHANG) > 0) {
        $alive--;
        # By then numbers have been given out again and again.
        tell_ready() if ++$gone == 300;
    }
    select undef, undef, undef, 0.0003;
}
