import { expect } from 'chai';
import { imageFaultOf } from '../../src/k8s/sandboxes/image-reference.ts';

const SHA256 = `sha256:${'0a'.repeat(32)}`;
const SHA512 = `sha512:${'0a'.repeat(64)}`;

describe('the name of a container image', () => {
  for (const image of [
    'busybox',
    'busybox:1',
    'library/busybox:1.36-musl',
    'registry.example/team/app',
    'registry.example:5000/app:v1',
    'localhost/app',
    'localhost:5000/app',
    '127.0.0.1:5000/app',
    '[::1]:5000/app',
    '[fd00::1]/app',
    'a/b/c/d',
    'a-b_c__d-e---f/g.h',
    `app@${SHA256}`,
    `registry.example/app:1@${SHA256}`,
    `app@${SHA512}`,
    `app:${'x'.repeat(128)}`,
    'app:_x.Y-z',
    'Registry.Example/app',
    'xn--9n2bp8q.example/app',
    `app:${'0'.repeat(64)}`,
    `${'a/'.repeat(100)}a`,
  ])
    it(`can be ${image.slice(0, 80)}`, () => {
      expect(imageFaultOf(image)).to.equal(undefined);
    });

  for (const [image, words] of [
    ['', 'must name an image'],
    ['../busybox', '".."'],
    ['library/../busybox', '".."'],
    ['registry.example/../x', '".."'],
    ['registry.example/a/..', '".."'],
    ['./a', '"."'],
    ['BusyBox', 'lower case'],
    ['library/BusyBox:1', 'lower case'],
    ['registry.example/Team/app', 'lower case'],
    ['Team/app', 'lower case'],
    [`app@${SHA256}@${SHA256}`, 'more than one digest'],
    [`app@${SHA256}@`, 'more than one digest'],
    ['app@', 'digest'],
    ['app@sha256:12', 'digest'],
    [`app@${SHA256.toUpperCase()}`, 'digest'],
    [`app@md5:${'0'.repeat(32)}`, 'digest'],
    ['a'.repeat(300), '255'],
    [`registry.example/${'a'.repeat(239)}`, '255'],
    ['app:', 'tag'],
    ['app:-x', 'tag'],
    [`app:${'x'.repeat(129)}`, 'tag'],
    ['app:1:2', 'tag'],
    ['app:a b', 'tag'],
    [`app:1\n`, 'tag'],
    ['a//b', 'must be the name'],
    ['/a', 'must be the name'],
    ['a/', 'must be the name'],
    ['a b', 'must be the name'],
    ['a_-b', 'must be the name'],
    ['-a', 'must be the name'],
    ['a.', 'must be the name'],
    ['a___b', 'must be the name'],
    ['http://registry.example/a', 'host'],
    ['-x.example/a', 'host'],
    ['registry.example:port/a', 'host'],
    ['registry.example:5000/', 'must name'],
    ['é', 'must be the name'],
    ['app\n', 'must be the name'],
    ['0a'.repeat(32), 'id'],
  ] as const)
    it(`cannot be ${JSON.stringify(image.slice(0, 80))}`, () => {
      expect(imageFaultOf(image)).to.contain(words);
    });
});
