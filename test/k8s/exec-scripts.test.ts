import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { EXEC_SCRIPT, execOrder, TERMINAL_SCRIPT } from '../../src/k8s/streams/exec-scripts.ts';

const SHOW = ['sh', '-c', 'printf "%s|%s" "$LANG" "$TERM"'];

/** What a script prints after its process id, in an image with that environment. */
const printed = (
  script: string,
  args: readonly string[],
  {
    env,
    input = '',
  }: { readonly env: Readonly<Record<string, string>>; readonly input?: string | Buffer },
): string =>
  spawnSync('/bin/sh', ['-c', script, 'sh', ...args], {
    env: { PATH: '/usr/bin:/bin', ...env },
    input,
  })
    .stdout.toString()
    .replace(/^\d+\n/, '');

const ofCommand = (
  env: Readonly<Record<string, string>>,
  asked?: Readonly<Record<string, string>>,
): string =>
  printed(EXEC_SCRIPT, [], { env, input: execOrder({ argv: SHOW, env: asked, token: 'token ' }) });
const ofTerminal = (env: Readonly<Record<string, string>>): string =>
  printed(TERMINAL_SCRIPT, SHOW, { env });

describe('the environment inside Pods', () => {
  it('has the LANG of every sandbox in commands, and no TERM', () => {
    expect(ofCommand({})).to.equal('C.UTF-8|');
    expect(ofCommand({ LANG: '' })).to.equal('C.UTF-8|');
  });

  it('has the LANG of image or template where one is given, and of the request before it', () => {
    expect(ofCommand({ LANG: 'de_DE.UTF-8' })).to.equal('de_DE.UTF-8|');
    expect(ofCommand({ LANG: 'de_DE.UTF-8' }, { LANG: 'C' })).to.equal('C|');
    expect(ofTerminal({ LANG: 'de_DE.UTF-8' })).to.equal('de_DE.UTF-8|xterm-256color');
  });

  it('has LANG and TERM in terminals, whatever TERM the runtime sets', () => {
    expect(ofTerminal({})).to.equal('C.UTF-8|xterm-256color');
    expect(ofTerminal({ TERM: 'xterm' })).to.equal('C.UTF-8|xterm-256color');
  });
});
