import { expect } from 'chai';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { copyToolchainEtc } from '../../../src/embedded/spawner/sandbox/host-etc.ts';

describe("the machine's /etc of toolchains", () => {
  let folder: string;
  const inside = (): readonly string[] =>
    readdirSync(join(folder, 'to'), { recursive: true, encoding: 'utf8' }).toSorted();
  const file = (path: string, mode = 0o644): void => {
    mkdirSync(join(folder, 'etc', path, '..'), { recursive: true });
    writeFileSync(join(folder, 'etc', path), path);
    chmodSync(join(folder, 'etc', path), mode);
  };
  const copy = (): void =>
    copyToolchainEtc({
      from: join(folder, 'etc'),
      to: join(folder, 'to'),
      put: (path, bytes) => writeFileSync(path, bytes),
    });

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-etc-'));
    mkdirSync(join(folder, 'etc'));
    mkdirSync(join(folder, 'to'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('is copied by a list', () => {
    for (const path of ['java-17-openjdk/net.properties', 'ssl/openssl.cnf', 'services'])
      file(path);
    for (const path of [
      'passwd',
      'shadow',
      'ssh/ssh_config',
      'hosts',
      'gitconfig',
      'npmrc',
      'pip.conf',
    ])
      file(path);
    file('ssl/private/server.pem');
    file('ssl/other.cnf');

    copy();

    expect(inside()).to.deep.equal([
      'java-17-openjdk',
      'java-17-openjdk/net.properties',
      'services',
      'ssl',
      'ssl/openssl.cnf',
    ]);
    expect(readFileSync(join(folder, 'to/services'), 'utf8')).to.equal('services');
  });

  it('lacks what others may not read, and what is named like a secret', () => {
    file('perl/open.cfg');
    file('perl/closed.cfg', 0o640);
    file('perl/closed/file');
    chmodSync(join(folder, 'etc/perl/closed'), 0o750);
    for (const name of ['jmxremote.password', 'server.key', 'API-TOKEN', 'my.keystore', 'id_rsa'])
      file(`java/${name}`);

    copy();

    expect(inside()).to.deep.equal(['java', 'perl', 'perl/open.cfg']);
  });

  it('has links only into /usr and within a folder', () => {
    file('fonts/conf.d/one');
    const links = {
      'os-release': '../usr/lib/os-release',
      services: '/etc/shadow',
      magic: '../root/magic',
      'fonts/inside': 'conf.d/one',
      'fonts/usr': '/usr/share/x',
      'fonts/outside': '../ssh/key',
      'fonts/far': '/etc/fontsx/y',
    };
    for (const [name, target] of Object.entries(links))
      symlinkSync(target, join(folder, 'etc', name));

    copy();
    copy();

    expect(inside()).to.deep.equal([
      'fonts',
      'fonts/conf.d',
      'fonts/conf.d/one',
      'fonts/inside',
      'fonts/usr',
      'os-release',
    ]);
    expect(readlinkSync(join(folder, 'to/os-release'))).to.equal('../usr/lib/os-release');
  });
});
