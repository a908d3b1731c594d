# The page of lockstep trace --html, in a browser: what it draws, and how it
# answers the wheel, the keys and the pointer.
load helpers

setup() {
    command -v chromium >/dev/null || skip "chromium is not installed"
    [ -z "$LOCKSTEP_SANITIZE" ] || skip "the browser's time is not ours"
    enter_scratch
    mkdir -p run/trace
    "$BUILD_DIR/tests/e2e/recorded/recorded" run/trace 3000
}

# browse FILE: $output is the page after its scripts, $stderr what went wrong.
browse() {
    run --separate-stderr timeout 60 chromium --headless=new --no-sandbox \
        --disable-gpu --no-first-run --user-data-dir="$PWD/profile" \
        --enable-logging=stderr --window-size=1200,800 \
        --virtual-time-budget=20000 --dump-dom "file://$PWD/$1"
}

@test "it is drawn offline, without an error, and zoomed and moved" {
    "$LOCKSTEP" trace run --html page.html
    cat page.html - >tried.html <<'END'
<script>
// Frames come when the browser likes: so each is drawn here.
const said = [], picture = () => c.toDataURL();
function shown(what) {
    draw();
    said.push(what + ' ' + (from > 0) + ' ' + (to < end));
}
function press(key) {
    document.dispatchEvent(new KeyboardEvent('keydown', {key}));
}
draw();
const whole = picture();
said.push('drawn ' + (drawn > 0 && drawn < 20000));
c.dispatchEvent(new WheelEvent('wheel', {deltaY: -900, clientX: 600, clientY: 100}));
shown('wheel');
said.push('changed ' + (picture() !== whole));
press('0');
shown('0');
said.push('again ' + (picture() === whole));
press('w');
shown('w');
for (let i = 0; i < 100; i++)
    press('d');
shown('d');
const box = c.getBoundingClientRect();
for (let x = 160; x < 1100 && !t.textContent; x++)
    c.dispatchEvent(new PointerEvent('pointermove', {clientX: box.x + x, clientY: box.y + 8}));
said.push('hint ' + / ms at .* s$/.test(t.textContent));
document.title = said.join('; ');
</script>
END
    browse tried.html
    [ "$status" -eq 0 ]
    echo "$stderr"
    [[ $stderr != *CONSOLE* ]]
    says "<title>drawn true; wheel true true; changed true; 0 false false; again true; w true true; d true false; hint true</title>"
}
