import { expect } from 'chai';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cliHere } from './cli-support.ts';

/** Answers from files: `pods` for the first looks, then nothing. */
const KUBECTL = `#!/bin/sh
cd "$(dirname "$0")" || exit 1
echo "$*" >>asked
case "$*" in
  *cordon*) [ -e broken ] && { echo 'Error from server (NotFound): nodes "n1" not found' >&2; exit 1; } ;;
  *'get pods'*) [ "$(grep -c 'get pods' asked)" -le "$(cat looks)" ] && cat pods ;;
  *'get sandboxes'*) cat sandboxes ;;
esac
exit 0
`;

describe('sandpool nodes drain', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-kubectl-'));
    const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
    write('kubectl', KUBECTL);
    chmodSync(join(folder, 'kubectl'), 0o755);
    write('pods', 'red   sb-1\nred   sb-2\nblue   sb-3\n');
    write('sandboxes', 'sb-1   claimed\nsb-2   idle\n');
    write('looks', '1');
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });
  const drain = (...args: readonly string[]) =>
    cliHere(['nodes', 'drain', 'n1', ...args], {
      PATH: `${folder}:${process.env['PATH'] ?? ''}`,
    });

  it('cordons the node, lists its claimed sandboxes, and ends once they are gone', async () => {
    writeFileSync(join(folder, 'pods'), 'red   sb-1\nred   sb-2\n');
    expect(await drain('--context', 'there')).to.deep.equal({
      code: 0,
      stdout: 'node n1 has no sandboxes any more\n',
      stderr:
        'sandpool: node n1 is cordoned\n' +
        'sandpool: 1 claimed sandboxes run on n1, 1 others are leaving\n',
    });
    const [first = '', second = ''] = readFileSync(join(folder, 'asked'), 'utf8').split('\n');
    expect(first).to.equal('--context=there cordon -- n1');
    expect(second).to.contain('--field-selector=spec.nodeName=n1,');
  });

  it('ends with 3 after the timeout, with the remaining sandboxes', async () => {
    writeFileSync(join(folder, 'looks'), '1000');
    const { code, stdout, stderr } = await drain('--wait', '0.1s');
    expect([code, stdout]).to.deep.equal([3, '']);
    expect(stderr).to.contain('sandpool: after 0.1s 2 claimed sandboxes run on n1, 1 others');
    expect(stderr).to.contain('the node stays cordoned\n  red/sb-1\n  blue/sb-1\n');
  });

  it('ends with 1 and the message of kubectl if kubectl refuses', async () => {
    writeFileSync(join(folder, 'broken'), '');
    expect(await drain()).to.deep.equal({
      code: 1,
      stdout: '',
      stderr: 'sandpool: Error from server (NotFound): nodes "n1" not found\n',
    });
  });

  it('accepts a node name that looks like an option', async () => {
    await cliHere(['nodes', 'drain', '--wait', '0.1s', '--', '--selector=all'], {
      PATH: `${folder}:${process.env['PATH'] ?? ''}`,
    });
    const [first] = readFileSync(join(folder, 'asked'), 'utf8').split('\n');
    expect(first).to.equal('cordon -- --selector=all');
  });

  it('reports that it needs kubectl', async () => {
    const { code, stderr } = await cliHere(['nodes', 'drain', 'n1'], { PATH: '/nowhere' });
    expect([code, stderr]).to.deep.equal([
      1,
      'sandpool: kubectl is not in PATH\n  install kubectl, and try again\n',
    ]);
  });
});
