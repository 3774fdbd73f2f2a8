import { expect } from 'chai';
import { Sandbox } from 'e2b-2-51-0';
import { readFileSync } from 'node:fs';

const ROOT = new URL('../../', import.meta.url);
const PAGE = readFileSync(new URL('docs/e2b.md', ROOT), 'utf8');

/** What is the package's own, though it can be called: its types do not show it. */
const OF_ITS_OWN: ReadonlySet<string> = new Set([
  ...['resolveOpts', 'boundOpts', 'resolveApiOpts', 'fileUrl', 'start', 'supportsStdinClose'],
  ...['createSandbox', 'forkSandbox', 'connectSandbox', 'getFullInfo'],
  ...['defaultTemplate', 'defaultMcpTemplate'],
]);

const ownNames = (of: object): readonly string[] =>
  Object.getOwnPropertyNames(of).filter(
    (name) => !['length', 'name', 'prototype', 'constructor'].includes(name),
  );

const methodsOf = (first: object): readonly string[] => {
  const found = new Set<string>();
  for (
    let each: object | null = first;
    each !== null && each !== Object.prototype && each !== Function.prototype;
    each = Object.getPrototypeOf(each) as object | null
  )
    for (const name of ownNames(each)) if (!OF_ITS_OWN.has(name)) found.add(name);
  return [...found];
};

describe("the page on E2B's SDKs", () => {
  it('covers every method of the newest package', () => {
    const sandbox = new Sandbox({
      ...{ sandboxId: 'a', envdVersion: '0.6.1', apiKey: 'e2b_00' },
    } as unknown as ConstructorParameters<typeof Sandbox>[0]);
    const modules = ['commands', 'files', 'pty'] as const;
    const methods = [
      ...methodsOf(Sandbox),
      ...methodsOf(Sandbox.prototype),
      ...modules.flatMap((name) => methodsOf(Object.getPrototypeOf(sandbox[name]) as object)),
    ];

    expect(methods.length).to.be.above(40);
    expect(methods.filter((name) => !new RegExp(`\\b${name}\\b`).test(PAGE))).to.deep.equal([]);
    expect(PAGE).to.include('`git`');
  });

  it('names the tested versions', () => {
    const { devDependencies = {} } = JSON.parse(
      readFileSync(new URL('package.json', ROOT), 'utf8'),
    ) as { readonly devDependencies?: Readonly<Record<string, string>> };
    const pinned = readFileSync(new URL('test/e2b/python/requirements.txt', ROOT), 'utf8');
    const npm = Object.values(devDependencies).flatMap(
      (of) => /^npm:e2b@(.*)$/.exec(of)?.[1] ?? [],
    );
    const pypi = [...pinned.matchAll(/^e2b(?:-code-interpreter)?==(\d+\.\d+)/gm)].map(
      ([, version = '']) => version,
    );
    const interpreter = devDependencies['@e2b/code-interpreter']?.replace(/\.\d+$/, '') ?? '';
    const { 1: tested = '' } = /^Tested with ([^]*?)\n\n/m.exec(PAGE) ?? [];

    expect([npm.length, pypi.length]).to.deep.equal([4, 2]);
    for (const version of [...npm, ...pypi, interpreter]) expect(tested).to.include(version);
  });
});
