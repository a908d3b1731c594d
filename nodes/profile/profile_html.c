/* A run as one page: what it draws are lanes of spans that do not overlap, so
 * that each frame looks for what is visible by bisection, and draws no more
 * than one span for each pixel of a lane, whatever their number. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "buffer.h"
#include "profile_show.h"
#include "slices.h"

/* Spans inside of more others are left out. */
#define LANES_MAX 8

static const char *const head[] = {
    "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n",
    "<style>\n",
    "body{font:13px ",
    "system-ui,sans-serif;margin:0;color:#222;background:#fff}\n",
    "h1{font-size:16px;margin:12px}p{margin:4px 12px}\n",
    "#v{height:60vh;overflow-y:auto;border:solid #ccc;border-width:1px 0;",
    "position:relative}\n",
    "canvas{position:sticky;top:0;display:block;cursor:grab}\n",
    "#t{position:fixed;background:#222;color:#fff;padding:4px 8px;",
    "border-radius:4px;pointer-events:none;display:none}\n",
    "table{border-collapse:collapse;margin:12px}\n",
    "td,th{padding:2px 10px;text-align:right;border-bottom:1px solid #eee}\n",
    "td:nth-child(-n+2),th:nth-child(-n+2){text-align:left}\n",
    "</style>\n"};

static const char *const script[] = {
    "const H=16,L=150,K=['#ddd','#4c8','#e65','#48c','#a7d'];\n",
    "const v=document.getElementById('v'),c=v.querySelector('canvas'),",
    "g=c.getContext('2d'),t=document.getElementById('t');\n",
    "const lanes=[];let y=0,end=1;\n",
    "for(const n of D.tracks){n.y=y;for(const s of n.lanes){",
    "const k=s.length/4,a={n:k,b:new Float64Array(k),e:new Float64Array(k),",
    "m:new Uint16Array(k),k:new Uint8Array(k),y:y};\n",
    "for(let i=0;i<k;i++){a.b[i]=s[4*i];a.e[i]=s[4*i]+s[4*i+1];",
    "a.m[i]=s[4*i+2];a.k[i]=s[4*i+3]}\n",
    "if(k)end=Math.max(end,a.e[k-1]);lanes.push(a);y+=H}n.lanes=null;y+=6}\n",
    "const pad=document.createElement('div');v.appendChild(pad);\n",
    "let from=0,to=end,asked=false,drag=null;\n",
    "function first(a,x){let l=0,h=a.n;while(l<h){const m=l+h>>1;",
    "a.e[m]<=x?l=m+1:h=m}return l}\n",
    "function hue(m){return 'hsl('+m*137%360+' 50% 62%)'}\n",
    "function draw(){asked=false;const d=devicePixelRatio||1,W=v.clientWidth,",
    "V=v.clientHeight;\n",
    "if(c.width!=W*d||c.height!=V*d){c.width=W*d;c.height=V*d;",
    "c.style.width=W+'px';c.style.height=V+'px';",
    "pad.style.height=Math.max(0,y-V)+'px'}\n",
    "g.setTransform(d,0,0,d,0,0);g.clearRect(0,0,W,V);",
    "g.font='11px system-ui,sans-serif';g.textBaseline='middle';\n",
    "const s=(W-L)/(to-from),top=v.scrollTop;let drawn=0;\n",
    "for(const a of lanes){const py=a.y-top;if(py<-H||py>V)continue;\n",
    "for(let i=first(a,from);i<a.n&&a.b[i]<to;){",
    "const x=Math.max(L,L+(a.b[i]-from)*s),",
    "w=L+(Math.min(a.e[i],to)-from)*s-x;\n",
    "g.fillStyle=a.k[i]==1?hue(a.m[i]):K[a.k[i]];",
    "g.fillRect(x,py,Math.max(1,w-.3),H-1);drawn++;\n",
    "if(w>30){g.fillStyle='#111';g.save();g.beginPath();",
    "g.rect(x,py,w,H);g.clip();",
    "g.fillText(D.names[a.m[i]],x+3,py+H/2);g.restore()}\n",
    "i=w<1?Math.max(i+1,first(a,from+(x-L+1)/s)):i+1}}\n",
    "g.fillStyle='#fff';g.fillRect(0,0,L,V);g.fillStyle='#222';",
    "for(const n of D.tracks)g.fillText(n.name,8,n.y-top+H/2,L-16);\n",
    "window.drawn=drawn}\n",
    "function ask(){if(!asked){asked=true;requestAnimationFrame(draw)}}\n",
    "function view(a,b){const w=Math.min(end,Math.max(1,b-a));",
    "from=Math.min(Math.max(0,a),end-w);to=from+w;ask()}\n",
    "function zoom(f,x){const p=from+(x-L)/(v.clientWidth-L)*(to-from);",
    "view(p-(p-from)*f,p+(to-p)*f)}\n",
    "c.addEventListener('wheel',e=>{if(e.shiftKey)return;e.preventDefault();",
    "zoom(Math.exp(e.deltaY/300),e.offsetX)},{passive:false});\n",
    "c.onpointerdown=e=>{drag={x:e.clientX,y:e.clientY};",
    "c.setPointerCapture(e.pointerId)};c.onpointerup=()=>drag=null;\n",
    "c.onpointermove=e=>{if(drag){const w=(e.clientX-drag.x)*(to-from)/",
    "(v.clientWidth-L);view(from-w,to-w);v.scrollTop-=e.clientY-drag.y;",
    "drag={x:e.clientX,y:e.clientY};return}\n",
    "const x=from+(e.offsetX-L)/(v.clientWidth-L)*(to-from);let text='';\n",
    "for(const a of lanes){const py=a.y-v.scrollTop;",
    "if(e.offsetY<py||e.offsetY>=py+H||e.offsetX<L)continue;",
    "const i=first(a,x);if(i<a.n&&a.b[i]<=x)",
    "text=D.kinds[a.k[i]]+' '+D.names[a.m[i]]+': '+",
    "((a.e[i]-a.b[i])/1e3).toFixed(3)+' ms at '+(a.b[i]/1e6).toFixed(6)+' ",
    "s'}\n",
    "t.style.display=text?'block':'none';t.textContent=text;",
    "t.style.left=Math.min(e.clientX+12,innerWidth-300)+'px';",
    "t.style.top=e.clientY+12+'px'};\n",
    "c.onpointerleave=()=>t.style.display='none';v.onscroll=ask;",
    "window.onresize=ask;\n",
    "document.onkeydown=e=>{const w=(to-from)/10,m=(L+v.clientWidth)/2;",
    "({w:()=>zoom(.8,m),s:()=>zoom(1.25,m),a:()=>view(from-w,to-w),",
    "d:()=>view(from+w,to+w),0:()=>view(0,end)})[e.key]?.()};\n",
    "ask();\n"};

static void add_lines(struct buffer *to, const char *const *lines, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buffer_text(to, "%s", lines[i]);
}
#define ADD_LINES(to, lines)                                                   \
    add_lines((to), (lines), sizeof(lines) / sizeof((lines)[0]))

/* As text of the page. */
static void add_text(struct buffer *to, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '<' || *text == '&')
            buffer_text(to, "&#%d;", *text);
        else
            buffer_add(to, text, 1);
    }
}

/* As a text of the script. */
static void add_string(struct buffer *to, const char *text)
{
    buffer_add(to, "\"", 1);
    for (; *text != '\0'; text++) {
        if (*text == '<' || *text == '"' || *text == '\\')
            buffer_text(to, "\\u%04x", *text);
        else
            buffer_add(to, text, 1);
    }
    buffer_add(to, "\"", 1);
}

/* The spans of one thread that are inside of `depth` others. */
static void add_lane(struct buffer *to, const struct slice *slices,
                     const uint8_t *depths, size_t n, uint8_t depth,
                     int64_t begin)
{
    const char *between = "[";
    for (size_t i = 0; i < n; i++) {
        if (depths[i] != depth)
            continue;
        buffer_text(to, "%s%.1f,%.1f,%u,%u", between,
                    (double)(slices[i].begin - begin) / 1e3,
                    (double)(slices[i].end - slices[i].begin) / 1e3,
                    (unsigned)slices[i].name, (unsigned)slices[i].kind);
        between = ",";
    }
    buffer_text(to, "%s]", between[0] == '[' ? "[" : "");
}

static void add_track(struct buffer *to, const struct profile *profile,
                      size_t node, const struct slice *slices, uint8_t *depths,
                      size_t n, int64_t begin)
{
    int64_t ends[LANES_MAX];
    uint8_t depth = 0, most = 0;
    char name[160];
    for (size_t i = 0; i < n; i++) {
        while (depth > 0 && ends[depth - 1] <= slices[i].begin)
            depth--;
        depths[i] = depth;
        if (depth < LANES_MAX)
            ends[depth++] = slices[i].end;
        most = depth > most ? depth : most;
    }
    (void)snprintf(
        name, sizeof name, "%s %" PRIu32 ": %s", profile->nodes[node].file.role,
        profile->nodes[node].file.node, profile->names[slices[0].thread]);
    buffer_text(to, "{name:");
    add_string(to, name);
    buffer_text(to, ",lanes:[");
    for (uint8_t i = 0; i < most; i++) {
        add_lane(to, slices, depths, n, i, begin);
        buffer_text(to, ",");
    }
    buffer_text(to, "]},\n");
}

static int add_tracks(struct buffer *to, const struct profile_graph *graph,
                      size_t node, int64_t begin)
{
    struct slice *slices;
    size_t n, last = 0;
    const int status = slices_make(&slices, &n, graph, node);
    if (status != LS_OK)
        return status;
    uint8_t *const depths = calloc(n + 1, sizeof *depths);
    if (depths == NULL) {
        free(slices);
        return ls_error(LS_ENOMEM, "no memory for a page");
    }
    for (size_t i = 1; i <= n; i++) {
        if (i < n && slices[i].thread == slices[last].thread)
            continue;
        add_track(to, graph->profile, node, slices + last, depths, i - last,
                  begin);
        last = i;
    }
    free(depths);
    free(slices);
    return LS_OK;
}

static void add_rows(struct buffer *to, const struct profile_table *table)
{
    buffer_text(to, "<table><tr><th>node<th>step<th>p50 ms<th>p99 ms<th>works"
                    "<th>waits<th>blame</tr>\n");
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct profile_row *const row = &table->rows[i];
        const struct ls_trace_file *const file =
            &table->profile->nodes[row->node].file;
        const double time = table->times_ns[row->node];
        const double waited = table->waited_ns > 0 ? table->waited_ns : 1.0;
        buffer_text(to, "<tr><td>%" PRIu32 " ", file->node);
        add_text(to, file->role);
        buffer_text(to, "<td>");
        add_text(to, profile_step_text(table->profile, row->name));
        buffer_text(to, "<td>%.3f<td>%.3f<td>%.1f%%<td>%.1f%%<td>%.1f%%</tr>\n",
                    row->p50_ns / 1e6, row->p99_ns / 1e6,
                    100 * row->worked_ns / time, 100 * row->waited_ns / time,
                    100 * row->blamed_ns / waited);
    }
    buffer_text(to, "</table>\n");
}

static void add_blame(struct buffer *to, const struct profile_table *table)
{
    for (size_t i = 0; i < table->profile->n_nodes; i++) {
        const struct profile_row *most;
        const double blame = profile_blame(table, i, &most);
        const struct ls_trace_file *const file = &table->profile->nodes[i].file;
        if (most == NULL || blame < 0.01 * table->waited_ns)
            continue;
        buffer_text(to, "<p>");
        add_text(to, file->role);
        buffer_text(to,
                    " %" PRIu32 " caused %.0f%% of all waiting (%.2f s), "
                    "%.0f%% of it in ",
                    file->node, 100 * blame / table->waited_ns, blame / 1e9,
                    100 * most->blamed_ns / blame);
        add_text(to, profile_step_text(table->profile, most->name));
        buffer_text(to, "</p>\n");
    }
}

const struct written_form profile_html_form = {
    "a page of a profile",
    "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n<style>\n"
    "body{font:13px "};

int profile_write_html(const struct profile_table *table,
                       const struct profile_graph *graph, const char *path)
{
    const struct profile *const profile = graph->profile;
    struct buffer to = {.n = 0};
    int status = LS_OK;
    ADD_LINES(&to, head);
    buffer_text(&to, "<title>");
    add_text(&to, profile->nodes[0].file.job);
    buffer_text(&to, "</title><h1>");
    add_text(&to, profile->nodes[0].file.job);
    buffer_text(&to,
                "</h1><p>Wheel: zoom. Drag: move. Shift and wheel: scroll. "
                "Keys: w s a d, 0.</p>\n<div id=\"v\"><canvas></canvas></div>"
                "<div id=\"t\"></div>\n");
    add_blame(&to, table);
    add_rows(&to, table);
    buffer_text(&to, "<script>\n\"use strict\";\nconst D={kinds:[");
    for (size_t i = 0; i < SLICE_KINDS; i++)
        buffer_text(&to, "\"%s\",", slice_kinds[i]);
    buffer_text(&to, "],names:[");
    for (size_t i = 0; i < profile->n_names; i++) {
        add_string(&to, profile->names[i]);
        buffer_text(&to, ",");
    }
    buffer_text(&to, "],tracks:[\n");
    for (size_t i = 0; i < profile->n_nodes && status == LS_OK; i++)
        status = add_tracks(&to, graph, i, slices_begin(profile));
    buffer_text(&to, "]};\n");
    ADD_LINES(&to, script);
    buffer_text(&to, "</script>\n</html>\n");
    if (status == LS_OK)
        return buffer_write(&to, path);
    free(to.bytes);
    return status;
}
