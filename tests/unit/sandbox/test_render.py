"""A kernel's messages become text and images within limits."""

from rollout_sandbox.server.ipython.render import Rendering


def test_messages_come_in_order_and_without_colours():
    rendering = Rendering(1000)
    rendering.add("stream", {"text": "\x1b[31mred\x1b[0m\n"})
    rendering.add("execute_result", {"data": {"text/plain": "42"}})
    rendering.add("error", {"ename": "E", "traceback": ["a", "b"]})
    rendering.add("status", {"execution_state": "busy"})
    assert rendering.output.text() == "red\n42\na\nb\n"
    assert rendering.error_name == "E"


def test_images_over_the_limit_are_noted():
    rendering = Rendering(100)
    rendering.add("display_data", {"data": {"image/png": "x" * 1000}})
    rendering.add("display_data", {"data": {"image/png": "y" * 1000, "text/plain": "fig"}})
    assert rendering.images == ["x" * 1000]
    assert "left out" in rendering.output.text()
