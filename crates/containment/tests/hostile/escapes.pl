# A server that tries to leave something behind: `perl escapes.pl KIND FOLDER`, or `perl escapes.pl --list`.
#
# It sets its kind up, writes `yes` (or what went wrong) to FOLDER/ready when all of it is there, and then reads stdin to its
# end, like a server. Kinds that kill guardians wait for FOLDER/go, which the owner waits for too. This is Perl because its
# `syscall` reaches what safe Rust does not: clone flags, namespaces, a first thread that ends alone.
use strict;
use warnings;
use POSIX qw(:fcntl_h :signal_h setsid);

use constant {
    NEWTIME => 0x80, FS => 0x200, FILES => 0x400, PARENT => 0x8000, NEWNS => 0x20000, UNTRACED => 0x800000,
    NEWUSER => 0x10000000, NEWPID => 0x20000000, CHLD => 17,
};
my ($kind, $dir) = @ARGV;
my $serves_in_a_thread = 0;
# Each that is up writes one byte; the server waits for as many as it expects.
pipe my $up, my $tell or die;

# === what the kinds are made of ===

# Says that this process is up, and stays.
sub stay { $SIG{$_} = 'IGNORE' for qw(TERM INT HUP); up(); sleep 1000 while 1 }
sub up { syswrite $tell, '.' }

# A child that does this, and stays.
sub child(;&) { my $do = shift // sub { }; my $pid = fork // die; $pid or do { $do->(); stay() }; $pid }

# A child by that system call, which stays.
sub raw_child { my $pid = syscall $_[0], @_[1 .. $#_]; die "$kind: $!" if $pid < 0; $pid or stay(); $pid }
sub clone { raw_child(56, $_[0], 0, 0, 0, 0) }

# A child that leaves: another session, and its parent is gone.
sub daemon(;&) {
    my $do = shift // sub { };
    my $middle = fork // die;
    if (!$middle) { setsid(); fork and POSIX::_exit(0); $do->(); stay() }
    waitpid $middle, 0;
}

sub must { my ($what, $result) = @_; die "$kind: $what: $!" if $result < 0; $result }
sub prctl { must 'prctl', syscall(157, @_, (0) x (5 - @_)) }
sub limit { my ($which, $value) = @_; must 'setrlimit', syscall(160, $which, my $both = pack 'QQ', $value, $value) }
# What only root may do, another user may do in a user namespace of its own, in which it is root.
sub unshare {
    my ($user, $group) = ($>, $) + 0);
    must 'unshare', syscall(272, $_[0] | ($user ? NEWUSER : 0));
    return unless $user;
    put('/proc/self/setgroups', 'deny');
    put('/proc/self/uid_map', "0 $user 1");
    put('/proc/self/gid_map', "0 $group 1");
}
sub until_told { select undef, undef, undef, 0.001 until -e "$dir/go" }
sub parent_of { open my $f, '<', "/proc/$_[0]/stat" or die; local $/; <$f> =~ /.*\) . (\d+)/s; $1 + 0 }
# Once the owner has told who is who, which it does when its start is over.
sub guardians { select undef, undef, undef, 0.001 until -e "$dir/who"; my $inner = getppid; ($inner, parent_of($inner)) }
sub put { my ($file, $text) = @_; open my $f, '>', $file or die "$file: $!"; syswrite $f, $text or die "$file: $!" }

# In one piece: the test reads it as soon as it is there.
sub ready { put("$dir/ready.new", $_[0]); rename "$dir/ready.new", "$dir/ready" }

sub own_cgroup {
    open my $mounts, '<', '/proc/self/mounts' or die;
    my ($mount) = map { (split ' ')[1] } grep { (split ' ')[2] eq 'cgroup2' } <$mounts>;
    open my $groups, '<', '/proc/self/cgroup' or die;
    my ($own) = map { /^0::(.*)/ ? $1 : () } <$groups>;
    "$mount$own";
}

# One lineage that forks and exits, for half a minute if nobody ends it.
sub hop {
    my $end = time + 30;
    $SIG{$_} = 'IGNORE' for qw(TERM INT HUP CHLD);
    up();
    while (time < $end) { my $next = fork; POSIX::_exit(0) if $next; $_[0]->() if $_[0] }
    POSIX::_exit(0);
}

# A thread, in a process whose first thread ends.
sub without_leader { my $do = shift; require threads; threads->create($do)->detach; syscall 60, 0 }

# === the kinds: each returns how many must be up ===

my %kinds = (
    # --- by the flags of clone ---
    'clone-parent' => sub { clone(PARENT | CHLD); 1 },
    'clone-parent-again-and-again' => sub { clone(PARENT | CHLD) for 1 .. 20; 20 },
    'clone-without-a-signal' => sub { clone(0); 1 },
    'clone-with-another-signal' => sub { clone(10); 1 },
    'clone-untraced' => sub { clone(UNTRACED | CHLD); 1 },
    'clone-that-shares-files' => sub { clone(FILES | FS | CHLD); 1 },
    'vfork-that-holds-its-parent' => sub { child { raw_child(58) }; 1 },

    # --- by threads ---
    'thread-that-forks' => sub {
        require threads;
        child { threads->create(sub { child(); sleep 1000 })->detach; };
        2;
    },
    'first-thread-gone' => sub { child { without_leader(sub { child(); stay() }) }; 2 },
    'first-thread-gone-clone-parent' => sub { child { without_leader(sub { clone(PARENT | CHLD); stay() }) }; 2 },
    'first-thread-of-the-server-gone' => sub { child(); $serves_in_a_thread = 1; 1 },
    'thread-that-execs' => sub {
        require threads;
        child { threads->create(sub { up(); exec 'sleep', 1000 })->detach; sleep 1000 while 1 };
        1;
    },

    # --- by namespaces ---
    'own-user-namespace' => sub { child { must 'unshare', syscall(272, NEWUSER); child() }; 2 },
    'own-pid-namespace' => sub { child { unshare(NEWPID); child { child() } }; 3 },
    'pid-namespaces-three-deep' => sub {
        child { unshare(NEWPID); child { unshare(NEWPID); child { unshare(NEWPID); child { child() } } } };
        5;
    },
    'setns-into-another' => sub {
        child { unshare(NEWPID); put("$dir/first", child()) };
        child {
            select undef, undef, undef, 0.001 until -s "$dir/first";
            open my $said, '<', "$dir/first" or die;
            my $first = <$said>;
            for my $space ($> ? 'user' : (), 'pid') {
                open my $f, '<', "/proc/$first/ns/$space" or die "$space: $!";
                must 'setns', syscall(308, fileno $f, 0);
            }
            child { daemon() };
        };
        5;
    },
    'own-mounts-without-proc' => sub {
        child {
            unshare(NEWNS);
            # Private first: nobody else shall lose /proc.
            must 'mount', syscall(165, my $n = 'none', my $r = '/', 0, 0x44000, 0);
            must 'mount', syscall(165, my $s = 'none', my $p = '/proc', my $t = 'tmpfs', 0, 0);
            daemon();
        };
        2;
    },
    'own-time-namespace' => sub { child { unshare(NEWTIME); child { daemon() } }; 3 },

    # --- by who is whose parent ---
    'daemon' => sub { daemon(); 1 },
    'own-group' => sub { child { POSIX::setpgid(0, 0) }; 1 },
    'subreaper' => sub { child { prctl(36, 1); daemon() }; 2 },
    'subreapers-twenty-deep' => sub {
        my $d;
        $d = sub { my $n = shift; prctl(36, 1); daemon(); $n and child { $d->($n - 1) } };
        child { $d->(19) };
        40;
    },
    'subreaper-that-goes' => sub {
        child { prctl(36, 1); daemon(); child { prctl(36, 1); daemon(); up(); POSIX::_exit(0) } };
        4;
    },
    'chain-of-a-hundred' => sub {
        my $d;
        $d = sub { my $n = shift; $n and child { $d->($n - 1) } };
        child { $d->(99) };
        100;
    },
    'hundred-children' => sub { child() for 1 .. 100; 100 },
    'fifty-zombies' => sub { child { for (1 .. 50) { fork or POSIX::_exit(0) } }; 1 },
    'parent-death-signal' => sub { child { prctl(1, 28); child { prctl(1, 0); daemon() } }; 3 },

    # --- by never being the same ---
    'storm' => sub { child { hop() } for 1 .. 8; 8 },
    'storm-of-sessions' => sub { child { hop(sub { setsid() }) } for 1 .. 8; 8 },
    'exec-loop' => sub { daemon { $SIG{TERM} = 'IGNORE'; up(); exec $^X, $0, '--exec-loop', time + 30 }; 1 },
    'fork-at-term' => sub {
        # Five generations of them: without an end it would be a bomb.
        my $left = 5;
        child { $SIG{TERM} = sub { $left-- > 0 and fork }; up(); sleep 1000 while 1 };
        1;
    },
    'exec-at-term' => sub { child { $SIG{TERM} = sub { exec 'sleep', 1000 }; up(); sleep 1000 while 1 }; 1 },

    # --- by signals and debuggers ---
    'all-signals-blocked' => sub {
        child { my $all = POSIX::SigSet->new; $all->fillset; sigprocmask(SIG_BLOCK, $all); daemon() };
        2;
    },
    'all-signals-ignored' => sub {
        child { $SIG{$_} = 'IGNORE' for grep { !/KILL|STOP|NUM|RT/ } keys %SIG; daemon() };
        2;
    },
    'stopped' => sub { daemon { up(); kill STOP => $$ }; 1 },
    'stopped-again-and-again' => sub {
        daemon { $SIG{CONT} = sub { kill STOP => $$ }; up(); kill STOP => $$; sleep 1000 while 1 };
        1;
    },
    'traced-by-each-other' => sub {
        # Each seizes and interrupts its child, and does not wait for it.
        my $d;
        $d = sub {
            my $left = shift;
            my $below = child { $d->($left - 1) if $left };
            up();
            select undef, undef, undef, 0.02;
            syscall 101, $_, $below, 0, 0 for 0x4206, 0x4207;
            sleep 1000 while 1;
        };
        child { $d->(2) };
        4;
    },
    'server-traced' => sub {
        my $server = $$;
        # Where Yama asks for it: anybody may trace this process.
        syscall 157, 0x59616d61, -1, 0, 0, 0;
        child { must 'seize', syscall(101, 0x4206, $server, 0, 0) };
        1;
    },

    # --- by what they are ---
    'not-dumpable' => sub { child { prctl(4, 0); daemon() }; 2 },
    'without-the-cookie' => sub { child { limit(10, 0); daemon() }; 2 },
    'without-limits-to-live-on' => sub { child { my $c = child(); limit($_, 0) for 1, 2, 6, 7, 11, 12 }; 2 },
    'odd-name' => sub { child { $0 = ")\nState:\tZ (zombie)"; prctl(15, my $n = "x) Z 1 1 (\n\n"); daemon() }; 2 },
    'named-like-a-guardian' => sub {
        child { $0 = 'moored-guardian'; prctl(15, my $n = 'moored-guardian'); daemon() };
        2;
    },
    'every-file-closed' => sub { daemon { up(); POSIX::close($_) for 0 .. 255; sleep 1000 while 1 }; 1 },
    'idle-and-nice' => sub { child { must 'idle', syscall(144, 0, 5, my $p = pack 'i', 0); POSIX::nice(19); daemon() }; 2 },
    'io-uring' => sub { child { my $ring = syscall 425, 8, my $p = pack 'LLLx108', 0, 0, 2; daemon() }; 2 },
    'another-user' => sub { child { POSIX::setgid(47111); POSIX::setuid(47111) or die; daemon() }; 2 },
    'chroot' => sub { child { chroot $dir or die; chdir '/'; daemon() }; 2 },
    'record-removed' => sub { daemon(); unlink glob "$dir/run/*"; 1 },

    # --- by cgroups ---
    'leaf-left' => sub { my $leaf = own_cgroup(); daemon { put("$leaf/../cgroup.procs", $$) }; 1 },
    'groups-inside-the-leaf' => sub {
        my $leaf = own_cgroup();
        mkdir "$leaf/$_" or die for 'a', 'a/b';
        daemon { put("$leaf/a/b/cgroup.procs", $$) };
        1;
    },
    'frozen' => sub {
        my $leaf = own_cgroup();
        mkdir "$leaf/a";
        daemon { put("$leaf/a/cgroup.procs", $$); up(); put("$leaf/a/cgroup.freeze", 1) };
        1;
    },
    'leaf-left-and-frozen' => sub {
        my $leaf = own_cgroup();
        daemon { put("$leaf/../cgroup.procs", $$); until_told(); put("$leaf/cgroup.freeze", 1) };
        0;
    },
    'born-in-another-group' => sub {
        my $leaf = own_cgroup();
        sysopen my $group, "$leaf/..", O_RDONLY or die;
        my $args = pack 'Q11', 1 << 33, 0, 0, 0, CHLD, 0, 0, 0, 0, 0, fileno $group;
        raw_child(435, $args, 88);
        1;
    },
    'guardians-in-the-leaf' => sub {
        my $leaf = own_cgroup();
        daemon { put("$leaf/../cgroup.procs", $$) };
        put("$leaf/cgroup.procs", $_) for guardians();
        1;
    },

    # --- by the guardians ---
    'inner-stopped' => sub { daemon(); my @g = guardians(); kill STOP => $g[0]; 1 },
    'outer-stopped' => sub { daemon(); my @g = guardians(); kill STOP => $g[1]; 1 },
    'both-stopped' => sub { daemon(); my @g = guardians(); kill STOP => @g[1, 0]; 1 },
    'inner-killed' => sub { my @g = guardians(); daemon { up(); until_told(); kill KILL => $g[0] }; 1 },
    'outer-killed' => sub { my @g = guardians(); daemon { up(); until_told(); kill KILL => $g[1] }; 1 },
    'both-killed' => sub { my @g = guardians(); daemon { up(); until_told(); kill KILL => @g }; 1 },
    'inner-stopped-outer-killed' => sub {
        my @g = guardians();
        daemon { kill STOP => $g[0]; up(); until_told(); kill KILL => $g[1] };
        1;
    },
    'guardians-without-files' => sub {
        daemon();
        must 'prlimit', syscall(302, $_, 7, my $none = pack('QQ', 0, 0), 0) for guardians();
        1;
    },
);

# === the server ===

if ($kind eq '--list') { print map { "$_\n" } sort keys %kinds; exit }
if ($kind eq '--exec-loop') { exec $^X, $0, $kind, $dir if time < $dir; exit }

sub serve { 1 while sysread STDIN, my $read, 4096; POSIX::_exit(0) }

$SIG{__DIE__} = sub { ready("$_[0]"); POSIX::_exit(70) };
my $expected = $kinds{$kind}->();
sysread $up, my $byte, 1 or die for 1 .. $expected;
ready('yes');
without_leader(\&serve) if $serves_in_a_thread;
serve();
