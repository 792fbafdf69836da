# An unrelated program of the same user: it forks pairs X -> Y all the time, and writes down every signal that any of them
# gets, and from whom. Usage: bystander.pl LOG PAIRS. Ends when LOG.stop exists.
use strict;
use warnings;
use POSIX ();

my ($log, $most) = @ARGV;
open my $out, '>>', $log or die "$log: $!";
sub note { syswrite $out, "$_[0]\n" }
for my $signal (grep { $_ != 9 && $_ != 17 && $_ != 19 } 1 .. 31) {
    my $heard = sub { my (undef, $info) = @_; note("$$ got $signal from $info->{pid}") };
    POSIX::sigaction($signal, POSIX::SigAction->new($heard, POSIX::SigSet->new, POSIX::SA_SIGINFO));
}
sub collected { my ($pid, $status) = @_; note("$pid died of $status") if $status & 127 }

my ($alive, $pairs) = (0, 0);
until (-e "$log.stop") {
    if ($alive < $most and defined(my $x = fork)) {
        if (!$x) {
            my $y = fork;
            if (defined $y and !$y) { select undef, undef, undef, 0.06 + rand 0.06; POSIX::_exit(0) }
            if (defined $y) {
                my $gone;
                # A signal interrupts the wait, and is written down by its handler.
                do { $gone = waitpid $y, 0 } while $gone < 0 && $!{EINTR};
                collected($y, $?);
            }
            POSIX::_exit(0);
        }
        $alive++;
        $pairs++;
    }
    while ((my $x = waitpid -1, POSIX::WNOHANG) > 0) { $alive--; collected($x, $?) }
    select undef, undef, undef, 0.0002;
}
while (1) {
    my $x = wait;
    last if $x < 0 && !$!{EINTR};
    collected($x, $?) if $x > 0;
}
note("pairs $pairs");
