# Runs one block: `fish --no-config driver.fish BLOCK STATE`. STATE is fish code that restores what earlier blocks left.
# An interrupt ends a fish that runs a script, so each block gets a new process.

set -g __oi_block $argv[1]
set -g __oi_state $argv[2]
# The other variables describe this process, not what the user did.
set -g __oi_own _ argv CMD_DURATION COLUMNS EUID FISH_VERSION IFS LINES OLDPWD PWD SHLVL history hostname pipestatus \
    status status_generation umask version '__fish_*' '__oi_*' fish_bind_mode fish_history fish_kill_signal \
    fish_killring fish_pid fish_private_mode
set -e argv

# However the block ends, save the directory and the exported variables, then its variables and functions.
function __oi_save --on-event fish_exit
    begin
        printf '%s\0' $PWD
        for __oi_name in (set --names --export)
            printf '%s=%s\0' $__oi_name "$$__oi_name"
        end
    end >$__oi_state.exports
    begin
        for __oi_name in (set --names --global)
            switch $__oi_name
                case $__oi_own
                    continue
            end
            set -l __oi_value (string escape -- $$__oi_name)
            if not set --query --global --export $__oi_name
                echo set -g $__oi_name $__oi_value
            else if test (count $$__oi_name) -gt 1 # in the environment, a list is one string, which may have changed since
                set -l __oi_text (string escape -- "$$__oi_name")
                echo test "\"\$$__oi_name\"" = $__oi_text\; and set -gx $__oi_name $__oi_value
            end
        end
        set -g fish_function_path # else every function that could be loaded is loaded now
        for __oi_name in (functions --all --names)
            switch (functions --details $__oi_name)
                case "$__fish_data_dir/*" n/a autoloaded (status filename)
                case '*'
                    functions $__oi_name
            end
        end
        echo set umask $umask
    end >$__oi_state.new
    command mv -f $__oi_state.new $__oi_state
end

function __oi_stop --on-signal INT
    exit 130
end

test -e $__oi_state; and source $__oi_state
source $__oi_block
